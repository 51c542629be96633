// The element types, and the way from a runtime type to a compile-time one.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "multihead/base/error.h"

namespace mh {

enum class DType : uint8_t { f32, bf16, f16, f64, i8, u8, i32, i64, boolean };

constexpr std::string_view name(DType t) {
  switch (t) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::f64: return "f64";
    case DType::i8: return "i8";
    case DType::u8: return "u8";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::boolean: return "bool";
  }
  return "?";
}

constexpr int64_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    default: return 1;
  }
}

constexpr bool is_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16 || t == DType::f64; }

// bfloat16: the upper half of an f32. Rounds to nearest even; NaN stays NaN.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  explicit bf16(float value);
  explicit bf16(double value);  // rounded once
  // Forced inline: an instruction set's translation unit must leave no copy of it for the linker to pick.
  [[gnu::always_inline]] explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

// IEEE binary16, subnormals included. Rounds to nearest even; overflow gives infinity.
struct f16 {
  uint16_t bits = 0;

  f16() = default;
  explicit f16(float value);
  explicit f16(double value);  // rounded once
  explicit operator float() const;
};

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<f16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}

// Calls f<T>() with the type behind `t`, one of f32, bf16, f16.
// Throws: unsupported, naming `op` and the type, for any other.
template <class F>
auto visit_float(std::string_view op, DType t, F&& f) {
  switch (t) {
    case DType::f32: return f.template operator()<float>();
    case DType::bf16: return f.template operator()<bf16>();
    case DType::f16: return f.template operator()<f16>();
    default:
      fail(ErrorKind::unsupported, "{}: elements of type {} are not supported; expected f32, bf16 or f16", op, name(t));
  }
}

// The same for every type.
template <class F>
auto visit_any(DType t, F&& f) {
  switch (t) {
    case DType::f32: return f.template operator()<float>();
    case DType::bf16: return f.template operator()<bf16>();
    case DType::f16: return f.template operator()<f16>();
    case DType::f64: return f.template operator()<double>();
    case DType::i8: return f.template operator()<int8_t>();
    case DType::u8: return f.template operator()<uint8_t>();
    case DType::i32: return f.template operator()<int32_t>();
    case DType::i64: return f.template operator()<int64_t>();
    case DType::boolean: return f.template operator()<bool>();
  }
  fail(ErrorKind::internal, "dtype: {} is not an element type", static_cast<int>(t));
}

}  // namespace mh
