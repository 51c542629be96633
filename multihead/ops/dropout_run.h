// Dropout of a result that nobody has seen yet, for ops that end with it.
#pragma once

#include <string_view>

#include "multihead/ops/dropout.h"

namespace mh::detail {

// Drops elements of x, contiguous, where they lie; what the others were multiplied by (0 where none is kept).
// Throws: as dropout, in the name of `op`.
float drop_in_place(std::string_view op, const Tensor& x, const DropoutOptions& options);

}  // namespace mh::detail
