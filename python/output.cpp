// Arrays out: of the kind the caller gave, in memory its own library allocates where it can.
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "python/array.h"
#include "python/element_type.h"

namespace mh::python {

using namespace nb::literals;

namespace {

nb::handle numpy_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return numpy("float32");
    case DType::f16: return numpy("float16");
    case DType::f64: return numpy("float64");
    case DType::i32: return numpy("int32");
    case DType::i8: return numpy("int8");
    default: fail(ErrorKind::internal, "multihead: no result holds {}", name(dtype));
  }
}

nb::object numpy_type(const Array& like, DType dtype) {
  if (like.kind().way == ArrayKind::Way::numpy && like.tensor().dtype() == dtype) return like.object().attr("dtype");
  if (dtype == DType::bf16) return nb::module_::import_("ml_dtypes").attr("bfloat16");
  return nb::borrow(numpy_name(dtype));
}

nb::object empty_numpy(const Shape& shape, nb::handle dtype) {
  nb::object sizes = nb::steal(PyTuple_New(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) PyTuple_SetItem(sizes.ptr(), axis, PyLong_FromLongLong(shape[axis]));
  return numpy("empty")(sizes, dtype);
}

// An object with __dlpack__ over the memory of a tensor of our own.
nb::object dlpack_object(const Tensor& tensor) {
  auto* kept = new Tensor(tensor);
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  const View& view = tensor.view();
  const std::vector<size_t> sizes(view.size.begin(), view.size.begin() + view.rank);
  const std::vector<int64_t> strides(view.stride.begin(), view.stride.begin() + view.rank);
  return nb::cast(nb::ndarray<nb::array_api>(view.data, sizes.size(), sizes.data(), owner, strides.data(),
                                             dlpack_type(tensor.dtype()), dlpack::kCpu));
}

// The function that makes an array of the type of `like` from one with __dlpack__, or none.
nb::object importer(nb::handle like) {
  if (nb::hasattr(like, "__array_namespace__")) {
    const nb::object space = like.attr("__array_namespace__")();
    if (nb::hasattr(space, "from_dlpack")) return space.attr("from_dlpack");
  }
  const std::string module = nb::cast<std::string>(like.type().attr("__module__"));
  const nb::object root = nb::module_::import_(module.substr(0, module.find('.')).c_str());
  return nb::getattr(root, "from_dlpack", nb::none());
}

void set_error(void* text, const char*, const char* message) { *static_cast<std::string*>(text) = message; }

}  // namespace

Output::Output(const Array& like, const Shape& shape, DType dtype) : like_(like) {
  switch (like.kind().way) {
    case ArrayKind::Way::numpy: make_numpy(shape, dtype); break;
    case ArrayKind::Way::exchange: make_exchange(shape, dtype); break;
    default: tensor_ = empty(shape, dtype);
  }
}

Output::~Output() {
  if (managed_ && managed_->deleter) managed_->deleter(managed_);
}

void Output::make_numpy(const Shape& shape, DType dtype) {
  numpy_ = empty_numpy(shape, numpy_type(like_, dtype));
  tensor_ = Array({"multihead", "the result"}, numpy_, Access::write).tensor();
}

void Output::make_exchange(const Shape& shape, DType dtype) {
  int64_t sizes[kMaxRank];
  for (int axis = 0; axis < shape.rank(); ++axis) sizes[axis] = shape[axis];
  nb::dlpack::dltensor wanted;
  wanted.device = {dlpack::kCpu, 0};
  wanted.ndim = shape.rank();
  wanted.dtype = dlpack_type(dtype);
  wanted.shape = sizes;
  std::string why;
  if (like_.kind().api->allocate(&wanted, &managed_, &why, set_error) != 0)
    fail(ErrorKind::internal, "multihead: the result {} was not allocated; {}", shape, why);
  tensor_ = shape.count() == 0
                ? empty(shape, dtype)
                : wrap(static_cast<char*>(managed_->tensor.data) + managed_->tensor.byte_offset, shape, dtype);
}

nb::object Output::release() {
  if (numpy_.is_valid()) return std::move(numpy_);
  if (!managed_) return to_array(like_, tensor_);
  void* object = nullptr;
  if (like_.kind().api->to_object(std::exchange(managed_, nullptr), &object) != 0) throw nb::python_error();
  return nb::steal(static_cast<PyObject*>(object));
}

nb::object to_numpy(const Tensor& tensor) { return numpy("asarray")(dlpack_object(tensor)); }

nb::object to_array(const Array& like, const Tensor& tensor) {
  switch (like.kind().way) {
    case ArrayKind::Way::numpy: {
      if (tensor.dtype() != DType::bf16) return to_numpy(tensor);
      Output copy(like, tensor.shape(), tensor.dtype());
      copy.tensor().copy_from(tensor);
      return copy.release();
    }
    case ArrayKind::Way::exchange:
    case ArrayKind::Way::dlpack: {
      const nb::object from_dlpack = importer(like.object());
      return from_dlpack.is_none() ? to_numpy(tensor) : from_dlpack(dlpack_object(tensor));
    }
    case ArrayKind::Way::none: break;
  }
  fail(ErrorKind::internal, "multihead: no array was given");
}

}  // namespace mh::python
