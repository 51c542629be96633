// The structures of DLPack 1 and of its C exchange API, as their binary interface fixes them.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>

namespace mh::python::dlpack {

namespace nb = nanobind;

inline constexpr int32_t kCpu = 1, kCuda = 2;
inline constexpr uint32_t kMajor = 1;
inline constexpr uint64_t kReadOnly = 1;  // of the flags of a versioned tensor

struct ManagedTensor {
  nb::dlpack::dltensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

struct VersionedTensor {
  uint32_t major, minor;
  void* context;
  void (*deleter)(VersionedTensor*);
  uint64_t flags;
  nb::dlpack::dltensor tensor;
};

// What the attribute __dlpack_c_exchange_api__ of a type points to: arrays without a Python call on the way.
struct ExchangeApi {
  uint32_t major, minor;
  ExchangeApi* previous;  // an older version, or null
  int (*allocate)(nb::dlpack::dltensor* prototype, VersionedTensor** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*share)(void* object, VersionedTensor** out);
  int (*to_object)(VersionedTensor* stolen, void** out);
  int (*borrow)(void* object, nb::dlpack::dltensor* out);  // may be null
  int (*stream)(int32_t device_type, int32_t device_id, void** out);
};

}  // namespace mh::python::dlpack
