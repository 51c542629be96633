// Element types as Python's protocols spell them.
#pragma once

#include <nanobind/ndarray.h>

#include <string_view>

#include "multihead/base/dtype.h"

namespace mh::python {

// Throws: unsupported, naming op and argument, where we have no such type.
DType dtype_of_format(std::string_view op, std::string_view what, const char* format, int64_t item_size);
DType dtype_of_dlpack(std::string_view op, std::string_view what, nanobind::dlpack::dtype type);
nanobind::dlpack::dtype dlpack_type(DType dtype);

}  // namespace mh::python
