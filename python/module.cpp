// The extension module multihead._core: its parts, and errors as exceptions of Python.
#include <nanobind/nanobind.h>

#include <string>

#include "multihead/base/out_of_memory.h"
#include "python/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

PyObject* exception_of(mh::ErrorKind kind) {
  switch (kind) {
    case mh::ErrorKind::invalid_argument: return PyExc_ValueError;
    case mh::ErrorKind::unsupported: return PyExc_NotImplementedError;
    case mh::ErrorKind::io: return PyExc_OSError;
    case mh::ErrorKind::internal: return PyExc_RuntimeError;
  }
  return PyExc_RuntimeError;
}

// The ops that write into given memory are called x_into in C++; in Python that is x.
std::string in_python(std::string sentence) {
  const size_t colon = sentence.find(':'), into = sentence.find("_into:");
  if (into != std::string::npos && into + 5 == colon) sentence.erase(into, 5);
  return sentence;
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const mh::OutOfMemory& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const mh::Error& error) {
    PyErr_SetString(exception_of(error.kind()), in_python(error.what()).c_str());
  }
}

// Types of nanobind's functions refuse new attributes to Python; theirs are this module's own (NB_DOMAIN).
void add_to_type(nb::handle type, nb::str name, nb::handle value) {
  if (PyObject_GenericSetAttr(type.ptr(), name.ptr(), value.ptr()) != 0) throw nb::python_error();
  PyType_Modified(reinterpret_cast<PyTypeObject*>(type.ptr()));
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The compiled part of multihead.";
  // PyTorch keeps its operators, and with them our masks, for the life of the process: no leak to warn of.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);
  mh::python::bind_mask(m);
  mh::python::bind_options(m);
  mh::python::bind_cache(m);
  mh::python::bind_attention(m);
  mh::python::bind_weights(m);
  mh::python::bind_gpu(m);
  mh::python::bind_gradients(m);
  mh::python::bind_matmul(m);
  mh::python::bind_machine(m);
  mh::python::bind_shared_threads(m);
  mh::python::bind_tasks(m);
  mh::python::bind_text(m);
  mh::python::bind_generate(m);
  mh::python::bind_pretrained(m);
  mh::python::bind_recording(m);
  mh::python::bind_show(m);
  mh::python::bind_train(m);
  m.def("add_to_type", add_to_type, "type"_a, "name"_a, "value"_a, "Gives a type of functions an attribute.");
}
