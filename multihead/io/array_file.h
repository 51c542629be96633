// Arrays of numbers in files: IDX, as MNIST comes in, and NumPy's .npy.
#pragma once

#include <string>
#include <string_view>

#include "multihead/tensor/tensor.h"

namespace mh {

// IDX: two bytes of 0, the type, the number of axes, their sizes, the numbers, all big-endian. u8, i8, i32, f32 and f64
// stay what they are, i16 becomes i32. gzip and xz are unpacked. Throws: io where the file cannot be read, is not IDX,
// or holds more or fewer numbers than its sizes say.
Tensor read_idx(const std::string& path);

// .npy of versions 1 to 3: f2, f4, f8, u1, i1, i4, i8 and bool in either byte order, rows first. Throws: io, likewise;
// unsupported for other types, Fortran's order and Python's objects.
Tensor read_npy(const std::string& path);

// What stands before the numbers, dense and in this machine's order, of a .npy file. `note`: a comment behind the
// description, which NumPy skips and read_npy_note gives back. Throws: invalid_argument for a note with a line break;
// unsupported for a type that .npy has not.
std::string npy_prefix(const Shape& shape, DType type, std::string_view note = {});
// Durable. Throws: io; as npy_prefix.
void write_npy(const std::string& path, const Tensor& x, std::string_view note = {});
// The note of a file; empty where it has none, or is no .npy file of version 1. Throws: io where it cannot be read.
std::string read_npy_note(const std::string& path);

}  // namespace mh
