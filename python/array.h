// Arrays of Python seen as tensors without a copy, and results given back as arrays of the same kind.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

#include "multihead/tensor/tensor.h"
#include "python/array_kind.h"
#include "python/dlpack.h"

namespace mh::python {

namespace nb = nanobind;

// Where an argument stands, for refusals.
struct Site {
  std::string_view op, what;
};

enum class Access { read, write };
// For the length of a call the caller's reference is enough; what is kept longer shares the memory.
enum class Life { call, kept };
// Memory of the CPU, or of an NVIDIA GPU too: there nothing may read it but what is queued on the GPU.
enum class Place { cpu, any };

// Whether it is an array in the memory of an NVIDIA GPU.
bool on_gpu(nb::handle object);

// An array argument: its memory, shape and strides. Made and destroyed under the GIL.
class Array {
 public:
  // Throws: invalid_argument where the array is none we can read; nb::type_error where it is not an array.
  Array(const Site& site, nb::handle object, Access access = Access::read, Life life = Life::call,
        Place place = Place::cpu);
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  const Tensor& tensor() const { return tensor_; }
  const ArrayKind& kind() const { return *kind_; }
  nb::handle object() const { return object_; }
  // The number of the GPU whose memory it is; -1: the CPU.
  int gpu() const { return gpu_; }

 private:
  void take_buffer(const Site& site, nb::handle object, Access access);
  void take_exchange(const Site& site, Life life);
  void take_dlpack(const Site& site, Access access);
  void wrap_dltensor(const Site& site, const nb::dlpack::dltensor& tensor);

  nb::handle object_;
  const ArrayKind* kind_;
  Place place_;
  int gpu_ = -1;
  Tensor tensor_;
  struct Held {
    Py_buffer buffer{};
    dlpack::VersionedTensor* versioned = nullptr;
    dlpack::ManagedTensor* managed = nullptr;
    ~Held();
  } held_;
};

// A fresh array of the kind of `like`, which outlives it.
class Output {
 public:
  Output(const Array& like, const Shape& shape, DType dtype);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  const Tensor& tensor() const { return tensor_; }
  // The array itself; once.
  nb::object release();

 private:
  void make_numpy(const Shape& shape, DType dtype);
  void make_exchange(const Shape& shape, DType dtype);

  const Array& like_;
  Tensor tensor_;
  nb::object numpy_;
  dlpack::VersionedTensor* managed_ = nullptr;
};

// `tensor` as an array of the kind of `like`. No copy, but for NumPy where the elements are bf16.
nb::object to_array(const Array& like, const Tensor& tensor);
// As an array of NumPy, without a copy; not of bf16, which NumPy does not know.
nb::object to_numpy(const Tensor& tensor);

// Throws: invalid_argument where the number does not fit 32 bits: none wraps.
void check_32_bits(const Site& site, int64_t number);
// Small arrays that are copied: integers as i32, floats as f32. Lists and numbers are taken too.
Tensor copy_integers(const Site& site, nb::handle object);
Tensor copy_floats(const Site& site, nb::handle object);

}  // namespace mh::python
