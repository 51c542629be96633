// The extension module multihead._core: its parts, and errors as exceptions of Python.
#include <nanobind/nanobind.h>

#include <string>

#include "multihead/base/error.h"
#include "python/bindings.h"

namespace nb = nanobind;

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
  } catch (const mh::Error& error) {
    PyErr_SetString(exception_of(error.kind()), in_python(error.what()).c_str());
  }
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
  mh::python::bind_gradients(m);
  mh::python::bind_matmul(m);
  mh::python::bind_machine(m);
  mh::python::bind_shared_threads(m);
}
