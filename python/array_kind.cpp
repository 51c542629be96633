// Kinds of arrays: found by type, remembered for the life of the process.
#include "python/array_kind.h"

#include <forward_list>
#include <string_view>
#include <unordered_map>

namespace mh::python {
namespace {

const dlpack::ExchangeApi* exchange_api(nb::handle type) {
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) return nullptr;
  const auto* api = static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (api && api->major > dlpack::kMajor) api = api->previous;
  return api && api->major == dlpack::kMajor && api->borrow ? api : nullptr;
}

ArrayKind look_up(PyTypeObject* type) {
  const nb::handle handle(reinterpret_cast<PyObject*>(type));
  ArrayKind kind;
  kind.type = type;
  kind.api = exchange_api(handle);
  kind.has_gradients = nb::hasattr(handle, "requires_grad");
  if (PyObject_IsSubclass(handle.ptr(), numpy("ndarray").ptr()) == 1) {
    kind.way = ArrayKind::Way::numpy;
  } else if (kind.api) {
    kind.way = ArrayKind::Way::exchange;
  } else if (nb::hasattr(handle, "__dlpack__")) {
    kind.way = ArrayKind::Way::dlpack;
  }
  handle.inc_ref();
  return kind;
}

}  // namespace

const ArrayKind& kind_of(nb::handle object) {
  static std::forward_list<ArrayKind> kinds;
  PyTypeObject* type = Py_TYPE(object.ptr());
  for (const ArrayKind& kind : kinds) {
    if (kind.type == type) return kind;
  }
  return kinds.emplace_front(look_up(type));
}

nb::handle numpy(const char* name) {
  static std::unordered_map<std::string_view, PyObject*> found;
  PyObject*& object = found[name];
  if (!object) object = nb::getattr(nb::module_::import_("numpy"), name).release().ptr();
  return object;
}

}  // namespace mh::python
