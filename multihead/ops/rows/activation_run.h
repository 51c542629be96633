// The derivative of an activation on tensors, without checks or recording.
#pragma once

#include <string_view>

#include "multihead/ops/rows/activation.h"

namespace mh::detail {

// scale · dy · f'(x), in the type of both. relu may be given its result for x.
Tensor activation_gradient(std::string_view op, Activation kind, const Tensor& x, const Tensor& dy, float scale = 1);

}  // namespace mh::detail
