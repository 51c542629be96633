// Element types of the buffer protocol and of DLPack, to ours and back.
#include "python/element_type.h"

namespace mh::python {

using Code = nanobind::dlpack::dtype_code;

DType dtype_of_format(std::string_view op, std::string_view what, const char* format, int64_t item_size) {
  std::string_view letters = format ? format : "B";
  if (letters.size() > 1 && (letters[0] == '@' || letters[0] == '=' || letters[0] == '<')) letters.remove_prefix(1);
  switch (letters.size() == 1 ? letters[0] : '\0') {
    case 'f': return DType::f32;
    case 'e': return DType::f16;
    case 'd': return DType::f64;
    case 'b': return DType::i8;
    case 'B': return DType::u8;
    case '?': return DType::boolean;
    case 'i':
    case 'l':
    case 'q':
      if (item_size == 4) return DType::i32;
      if (item_size == 8) return DType::i64;
      break;
    default: break;
  }
  fail(
      ErrorKind::unsupported,
      "{}: {} holds elements of the type '{}'; expected floats of 16, 32 or 64 bits, integers of 8, 32 or 64, or bool, "
      "in the machine's byte order",
      op, what, format);
}

nanobind::dlpack::dtype dlpack_type(DType dtype) {
  const auto made = [&](Code code) {
    return nanobind::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * size_of(dtype)), 1};
  };
  switch (dtype) {
    case DType::bf16: return made(Code::Bfloat);
    case DType::f32:
    case DType::f16:
    case DType::f64: return made(Code::Float);
    case DType::u8: return made(Code::UInt);
    case DType::boolean: return made(Code::Bool);
    case DType::i8:
    case DType::i32:
    case DType::i64: return made(Code::Int);
  }
  fail(ErrorKind::internal, "dlpack: {} is not an element type", static_cast<int>(dtype));
}

DType dtype_of_dlpack(std::string_view op, std::string_view what, nanobind::dlpack::dtype type) {
  constexpr DType kAll[] = {DType::f32, DType::bf16, DType::f16, DType::f64,    DType::i8,
                            DType::u8,  DType::i32,  DType::i64, DType::boolean};
  for (const DType each : kAll) {
    if (dlpack_type(each) == type) return each;
  }
  fail(
      ErrorKind::unsupported,
      "{}: {} holds elements of DLPack's type {} with {} bits; expected floats of 16, 32 or 64 bits, bf16, integers of "
      "8, 32 or 64, or bool",
      op, what, static_cast<int>(type.code), static_cast<int>(type.bits));
}

}  // namespace mh::python
