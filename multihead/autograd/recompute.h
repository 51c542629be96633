// Activation checkpointing: a part of the computation that keeps only its inputs and is run again for its gradients.
#pragma once

#include <functional>
#include <vector>

#include "multihead/autograd/tape.h"

namespace mh {

// f(inputs), of which only the inputs are kept: backward runs f again, on a tape of its own. f must compute the same
// every time (a dropout in it draws the same numbers) and use no traced tensors but its inputs and `parameters`.
// Memory: of N such parts in a row, the inputs of all and the tape of one. Time: about a third more.
// Gradient: of inputs and parameters. Throws: invalid_argument, on backward, where f gives another shape.
Tensor recompute(const std::vector<Tensor>& inputs, const std::vector<Tensor>& parameters,
                 const std::function<Tensor(const std::vector<Tensor>& inputs)>& f);

}  // namespace mh
