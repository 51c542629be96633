// The functions that the public headers of ops/ declare, read from the headers themselves.
#pragma once

#include <string>
#include <vector>

namespace mh {

struct DeclaredOp {
  std::string result, name;
  std::vector<std::string> parameters;  // types alone: no const, no &, no std::

  // As "matmul(Tensor, PackedWeights, MatmulOptions)".
  std::string signature() const;
};

// Those of one header's text: functions of namespace mh, not members.
std::vector<DeclaredOp> declared_in(const std::string& text);
// Those of every header of multihead/ops/ that cmake/public_headers.txt lists, and of ops/update.h, which optim calls.
std::vector<DeclaredOp> declared_ops();

}  // namespace mh
