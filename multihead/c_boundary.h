// What stands between C and C++: exceptions become codes and a sentence, structs of other versions are read, arrays
// become tensors.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <type_traits>

#include "multihead/base/error.h"
#include "multihead/base/out_of_memory.h"
#include "multihead/c_base.h"
#include "multihead/tensor/tensor.h"

namespace mh::detail {

// Keeps the sentence for mh_last_error() of this thread, and gives the status back.
mh_status failed(mh_status status, const char* sentence) noexcept;
const char* last_error() noexcept;

template <class F>
mh_status guarded(F&& f) noexcept {
  try {
    f();
    return MH_OK;
  } catch (const OutOfMemory& error) {
    return failed(MH_OUT_OF_MEMORY, error.what());
  } catch (const Error& error) {
    constexpr std::array statuses{MH_INVALID_ARGUMENT, MH_UNSUPPORTED, MH_IO, MH_INTERNAL};
    return failed(statuses[static_cast<size_t>(error.kind())], error.what());
  } catch (const std::bad_alloc&) {
    return failed(MH_OUT_OF_MEMORY, "multihead: the system has no memory left");
  } catch (const std::exception& error) {
    return failed(MH_INTERNAL, error.what());
  } catch (...) {
    return failed(MH_INTERNAL, "multihead: an unknown exception was thrown");
  }
}

// The caller's struct as this version knows it. Throws: invalid_argument for a null one and a size that none can have;
// unsupported for one that says something past what is known.
template <class T>
T known_part(const char* op, const char* what, const T* given) {
  static_assert(std::is_trivially_copyable_v<T>);
  check(given != nullptr, "{}: {} is null; expected a pointer to one", op, what);
  constexpr size_t kLargest = 4096;
  const size_t size = given->size;
  check(size >= sizeof(size_t) && size <= kLargest, "{}: the size of {} is {}; expected sizeof of it, which is {} here",
        op, what, size, sizeof(T));
  T known;
  std::memset(&known, 0, sizeof known);
  std::memcpy(&known, given, std::min(size, sizeof known));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  const bool more = size > sizeof known &&
                    std::any_of(bytes + sizeof known, bytes + size, [](unsigned char byte) { return byte != 0; });
  if (more) {
    fail(ErrorKind::unsupported,
         "{}: {} is {} bytes long and says something past the {} this version knows; expected zeros there", op, what,
         size, sizeof known);
  }
  return known;
}

// Throws: invalid_argument where it is null or is not an array.
Tensor to_tensor(const char* op, const char* what, const mh_array* array);

}  // namespace mh::detail
