// Arrays in: by the buffer protocol (NumPy), DLPack's C exchange API (PyTorch), or DLPack.
#include "python/array.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "python/element_type.h"

namespace mh::python {

using namespace nb::literals;

namespace {

constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();

Tensor wrap_memory(const Site& site, void* data, const Shape& shape, const std::vector<int64_t>& strides, DType dtype) {
  // NumPy gives an array without elements an address that need not fit its type; nothing is read there.
  const bool none = shape.count() == 0;
  try {
    return none ? empty(shape, dtype) : wrap(data, shape, strides, dtype);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {} is not an array that can be read; {}", site.op, site.what, error.what());
  }
}

void check_rank(const Site& site, int rank) {
  check(rank <= kMaxRank, "{}: {} has rank {}; expected at most {}", site.op, site.what, rank, kMaxRank);
}

// The first line of the Python error that is set, which is cleared: PyTorch's go on with a backtrace of C++.
std::string take_python_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  std::string text = value ? nb::str(nb::handle(value)).c_str() : "no reason was given";
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return text.substr(0, text.find('\n'));
}

[[noreturn]] void refuse_type(const Site& site, nb::handle object) {
  const std::string text = fmt::format("{}: {} is a {}; expected an array (NumPy, PyTorch, or any with __dlpack__)",
                                       site.op, site.what, nb::inst_name(object).c_str());
  throw nb::type_error(text.c_str());
}

// NumPy has no bf16 of its own; ml_dtypes adds one, which the buffer protocol does not know.
bool is_bf16(nb::handle array) {
  return std::strcmp(nb::str(array.attr("dtype").attr("name")).c_str(), "bfloat16") == 0;
}

// Numbers of Python that NumPy could not put into 64 bits with a sign.
void refuse_past_64_bits(const Site& site, nb::handle made) {
  const std::string kind = nb::cast<std::string>(made.attr("dtype").attr("kind"));
  check(kind != "O" && kind != "u", "{}: {} does not hold integers of 64 bits; expected integers from {} to {}",
        site.op, site.what, kLeast, kMost);
}

void check_each_32_bits(const Site& site, const Tensor& dense) {
  const auto* at = dense.data<int64_t>();
  for (int64_t n = 0; n < dense.count(); ++n) check_32_bits(site, at[n]);
}

}  // namespace

void check_32_bits(const Site& site, int64_t number) {
  check(number >= kLeast && number <= kMost, "{}: {} holds {}; expected integers from {} to {}", site.op, site.what,
        number, kLeast, kMost);
}

bool on_gpu(nb::handle object) {
  const ArrayKind& kind = kind_of(object);
  nb::dlpack::dltensor borrowed;
  if (kind.way != ArrayKind::Way::exchange) return false;
  if (kind.api->borrow(object.ptr(), &borrowed) == 0) return borrowed.device.device_type == dlpack::kCuda;
  PyErr_Clear();
  return false;
}

Array::Array(const Site& site, nb::handle object, Access access, Life life, Place place)
    : object_(object), kind_(&kind_of(object)), place_(place) {
  switch (kind_->way) {
    case ArrayKind::Way::numpy: take_buffer(site, object, access); break;
    case ArrayKind::Way::exchange: take_exchange(site, life); break;
    case ArrayKind::Way::dlpack: take_dlpack(site, access); break;
    case ArrayKind::Way::none: refuse_type(site, object);
  }
}

Array::Held::~Held() {
  if (buffer.obj) PyBuffer_Release(&buffer);
  if (versioned && versioned->deleter) versioned->deleter(versioned);
  if (managed && managed->deleter) managed->deleter(managed);
}

void Array::take_buffer(const Site& site, nb::handle object, Access access) {
  Py_buffer& buffer = held_.buffer;
  const int flags = access == Access::write ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
  bool as_bf16 = false;
  if (PyObject_GetBuffer(object.ptr(), &buffer, flags) != 0) {
    const std::string why = take_python_error();
    as_bf16 = is_bf16(object);
    const nb::object bits = as_bf16 ? object.attr("view")("uint16") : nb::object();
    if (!as_bf16 || PyObject_GetBuffer(bits.ptr(), &buffer, flags) != 0) {
      fail(ErrorKind::invalid_argument, "{}: {} cannot be {}; {}", site.op, site.what,
           access == Access::write ? "written" : "read", as_bf16 ? take_python_error() : why);
    }
  }
  check_rank(site, buffer.ndim);
  const DType dtype = as_bf16 ? DType::bf16 : dtype_of_format(site.op, site.what, buffer.format, buffer.itemsize);
  std::vector<int64_t> sizes(buffer.shape, buffer.shape + buffer.ndim), strides(sizes.size());
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const Py_ssize_t step = buffer.strides[axis];
    check(step % buffer.itemsize == 0, "{}: axis {} of {} has a stride of {} bytes; expected a multiple of {}", site.op,
          axis, site.what, step, buffer.itemsize);
    strides[axis] = step / buffer.itemsize;
  }
  tensor_ = wrap_memory(site, buffer.buf, Shape(sizes), strides, dtype);
}

void Array::wrap_dltensor(const Site& site, const nb::dlpack::dltensor& from) {
  const bool cuda = place_ == Place::any && from.device.device_type == dlpack::kCuda;
  check(cuda || from.device.device_type == dlpack::kCpu,
        "{}: {} does not lie in the CPU's memory; expected an array that does", site.op, site.what);
  if (cuda) gpu_ = from.device.device_id;
  check_rank(site, from.ndim);
  const DType dtype = dtype_of_dlpack(site.op, site.what, from.dtype);
  const std::vector<int64_t> sizes(from.shape, from.shape + from.ndim);
  std::vector<int64_t> strides(sizes.size());
  int64_t dense = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = from.strides ? from.strides[axis] : dense;
    dense *= sizes[axis];
  }
  tensor_ = wrap_memory(site, static_cast<char*>(from.data) + from.byte_offset, Shape(sizes), strides, dtype);
}

void Array::take_exchange(const Site& site, Life life) {
  if (life == Life::call) {
    nb::dlpack::dltensor borrowed;
    if (kind_->api->borrow(object_.ptr(), &borrowed) != 0)
      fail(ErrorKind::invalid_argument, "{}: {} cannot be read; {}", site.op, site.what, take_python_error());
    return wrap_dltensor(site, borrowed);
  }
  if (kind_->api->share(object_.ptr(), &held_.versioned) != 0)
    fail(ErrorKind::invalid_argument, "{}: {} cannot be shared; {}", site.op, site.what, take_python_error());
  wrap_dltensor(site, held_.versioned->tensor);
}

void Array::take_dlpack(const Site& site, Access access) {
  nb::object capsule;
  try {
    capsule = object_.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    fail(ErrorKind::invalid_argument, "{}: {} cannot be read; {}", site.op, site.what, nb::str(error.value()).c_str());
  }
  // A capsule that is not renamed deletes its tensor itself: it is renamed once nothing can throw any more.
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto* managed = static_cast<dlpack::VersionedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    check(access == Access::read || !(managed->flags & dlpack::kReadOnly),
          "{}: {} is read-only; expected an array that can be written", site.op, site.what);
    wrap_dltensor(site, managed->tensor);
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    held_.versioned = managed;
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    wrap_dltensor(site, managed->tensor);
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    held_.managed = managed;
  } else {
    fail(ErrorKind::invalid_argument, "{}: {} gave no DLPack capsule; expected one from __dlpack__()", site.op,
         site.what);
  }
}

Tensor copy_integers(const Site& site, nb::handle object) {
  const bool is_array = kind_of(object).way != ArrayKind::Way::none;
  const nb::object made = is_array ? nb::borrow(object) : nb::object(numpy("asarray")(object));
  if (!is_array) refuse_past_64_bits(site, made);
  const Array array(site, made);
  const Tensor& t = array.tensor();
  const bool integers =
      t.dtype() == DType::i32 || t.dtype() == DType::i64 || t.dtype() == DType::i8 || t.dtype() == DType::u8;
  check(integers, "{}: {} holds {}; expected integers of 8, 32 or 64 bits; it is {}", site.op, site.what,
        name(t.dtype()), t.shape());
  if (t.dtype() == DType::i64) check_each_32_bits(site, t.clone());
  return t.dtype() == DType::i32 ? t.clone() : t.to(DType::i32);
}

Tensor copy_floats(const Site& site, nb::handle object) {
  const bool is_array = kind_of(object).way != ArrayKind::Way::none;
  const nb::object made = is_array ? nb::borrow(object) : nb::object(numpy("asarray")(object, "dtype"_a = "float32"));
  const Array array(site, made);
  check(is_float(array.tensor().dtype()), "{}: {} holds {}; expected floats; it is {}", site.op, site.what,
        name(array.tensor().dtype()), array.tensor().shape());
  return array.tensor().dtype() == DType::f32 ? array.tensor().clone() : array.tensor().to(DType::f32);
}

}  // namespace mh::python
