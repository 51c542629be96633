// What is known of a type of arrays: looked up once a type, then found by its address.
#pragma once

#include <nanobind/nanobind.h>

#include "python/dlpack.h"

namespace mh::python {

namespace nb = nanobind;

struct ArrayKind {
  enum class Way { numpy, exchange, dlpack, none };
  PyTypeObject* type = nullptr;  // a reference is held for good, so the address stays this type's
  Way way = Way::none;
  const dlpack::ExchangeApi* api = nullptr;  // exchange
  bool has_gradients = false;                // its arrays say requires_grad
};
const ArrayKind& kind_of(nb::handle object);

// A name of NumPy's, looked up once: the reference is held for good.
nb::handle numpy(const char* name);

}  // namespace mh::python
