// The error of memory that cannot be had.
#pragma once

#include <cstddef>
#include <new>
#include <string_view>

#include "multihead/base/error.h"

namespace mh {

// Of kind internal: nothing is wrong with the call but its size. What was held before is still held.
class OutOfMemory : public Error {
 public:
  // The sentence "op: … of memory cannot be allocated; …". `what`: for what, or empty.
  OutOfMemory(std::string_view op, size_t bytes, std::string_view what = {})
      : Error(ErrorKind::internal,
              fmt::format("{}: {} bytes of memory{}{} cannot be allocated; expected a smaller call, or more memory", op,
                          bytes, what.empty() ? "" : " for ", what)),
        bytes_(bytes) {}
  // How many were asked for.
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
};

// f(), whose own lists come to about so many bytes: that they cannot be had is said with them.
template <class F>
void within_memory(std::string_view op, size_t bytes, std::string_view what, F&& f) {
  try {
    f();
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(op, bytes, what);
  }
}

}  // namespace mh
