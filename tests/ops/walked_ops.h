// One call of every public op on float inputs: what every_op_test.cpp walks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct WalkedOp {
  std::string signature;  // as declared_ops.h gives it
  bool records;           // else it refuses
  std::vector<Tensor> inputs;
  std::function<std::vector<Tensor>(const std::vector<Tensor>& x)> call;  // every result that could carry a gradient
};

std::vector<WalkedOp> walked_ops();

}  // namespace mh
