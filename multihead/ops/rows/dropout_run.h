// Dropout of a result that nobody has seen yet, for ops that end with it.
#pragma once

#include <string_view>

#include "multihead/ops/rows/dropout.h"

namespace mh::detail {

// What dropout multiplies the elements by that it keeps; 0 where it keeps none. Throws: as dropout, in the name of
// `op`.
float kept_scale(std::string_view op, const DropoutOptions& options);

// Drops elements of x, contiguous, where they lie; kept_scale of the options.
// Throws: as dropout, in the name of `op`.
float drop_in_place(std::string_view op, const Tensor& x, const DropoutOptions& options);

}  // namespace mh::detail
