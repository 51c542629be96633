// The last sentence of each thread, and tensors over the caller's memory.
#include "multihead/c_boundary.h"

#include <string>
#include <vector>

namespace mh::detail {

namespace {

thread_local std::string last_sentence;

}  // namespace

mh_status failed(mh_status status, const char* sentence) noexcept {
  try {
    last_sentence = sentence;
  } catch (...) {
    last_sentence.clear();
  }
  return status;
}

const char* last_error() noexcept { return last_sentence.c_str(); }

Tensor to_tensor(const char* op, const char* what, const mh_array* array) {
  check(array != nullptr, "{}: {} is null; expected an array", op, what);
  check(array->dtype >= MH_F32 && array->dtype <= MH_BOOL, "{}: {} has the element type {}; expected one of mh_dtype",
        op, what, array->dtype);
  check(array->rank >= 0 && array->rank <= MH_MAX_RANK, "{}: {} has rank {}; expected 0 to {}", op, what, array->rank,
        MH_MAX_RANK);
  const std::vector<int64_t> extent(array->extent, array->extent + array->rank),
      stride(array->stride, array->stride + array->rank);
  const bool none = std::find(extent.begin(), extent.end(), 0) != extent.end();
  check(array->data != nullptr || none, "{}: the data of {} is null; expected its elements; {} is {}", op, what, what,
        to_string(Shape(extent)));
  try {
    return wrap(array->data, Shape(extent), stride, static_cast<DType>(array->dtype));
  } catch (const Error& error) {
    fail(error.kind(), "{}: {} is not an array; {}", op, what, error.what());
  }
}

}  // namespace mh::detail
