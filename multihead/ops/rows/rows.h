// What ops on rows share: the leading axes as one, and their refusals.
#pragma once

#include <string_view>

#include "multihead/kernels/activation.h"
#include "multihead/ops/rows/activation.h"
#include "multihead/tensor/tensor.h"

namespace mh::detail {

// x (…, C) as (R, C) with a unit last stride and without a trace; a copy only where strides do not allow a view.
Tensor rows_of(const Tensor& x);
// A contiguous tensor of no trace.
Tensor dense(const Tensor& x);

// Throws: unsupported unless the elements of x are f32, bf16 or f16.
void check_float(std::string_view op, std::string_view what, const Tensor& x);
// Throws: invalid_argument for a scalar.
void check_rows(std::string_view op, std::string_view what, const Tensor& x);
// Kernels of two types take f32 and bf16 in any mixture, or f16 twice. Throws: unsupported for others.
void check_types(std::string_view op, DType from, DType to);
// A parameter of C elements, f32, or empty. Throws: invalid_argument, with the shapes; unsupported for another type.
void check_parameter(std::string_view op, std::string_view what, const Tensor& parameter, const Tensor& x);
// Indices in i32, each in [0, limit), as far as they are read (ops/run.h: reads_contents). Throws: invalid_argument,
// with the first that is not.
void check_indices(std::string_view op, std::string_view what, const Tensor& indices, int64_t limit);

// Throws: invalid_argument for a number that is none of the kinds.
kernels::Activation kernel_activation(std::string_view op, Activation kind);

}  // namespace mh::detail
