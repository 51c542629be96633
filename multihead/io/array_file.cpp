// Headers of IDX and .npy, and the numbers behind them.
#include "multihead/io/array_file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/checked_math.h"
#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/file_bytes.h"
#include "multihead/io/unpack.h"

namespace mh {

namespace {

using Bytes = std::span<const std::byte>;

uint8_t byte_at(Bytes bytes, size_t at) { return std::to_integer<uint8_t>(bytes[at]); }

int64_t big_endian(Bytes bytes) {
  int64_t out = 0;
  for (const std::byte b : bytes) out = out * 256 + std::to_integer<int64_t>(b);
  return out;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  fail(ErrorKind::io, "{}: {}", printable_path(path), why);
}

Shape checked_shape(const std::string& path, const std::vector<int64_t>& sizes, int64_t each, size_t there) {
  if (sizes.size() > kMaxRank) refuse(path, fmt::format("{} axes; expected at most {}", sizes.size(), kMaxRank));
  std::optional<int64_t> bytes = each;
  for (const int64_t size : sizes) bytes = bytes ? checked_multiply(*bytes, size) : std::nullopt;
  if (!bytes || static_cast<uint64_t>(*bytes) != there)
    refuse(path, fmt::format("{} bytes of numbers; expected those of [{}], {} bytes each", there,
                             fmt::join(sizes, ", "), each));
  return Shape(sizes);
}

// Copies numbers of `each` bytes, turned round where the file's order is not this machine's.
void copy_numbers(std::byte* to, Bytes from, int64_t each, bool turned) {
  std::copy(from.begin(), from.end(), to);
  if (!turned || each == 1) return;
  for (size_t at = 0; at < from.size(); at += static_cast<size_t>(each)) std::reverse(to + at, to + at + each);
}

Tensor numbers(const Shape& shape, DType type, Bytes from, bool turned) {
  const Tensor out = empty(shape, type);
  copy_numbers(static_cast<std::byte*>(out.view().data), from, size_of(type), turned);
  return out;
}

struct NpyHeader {
  std::string descr;
  std::vector<int64_t> sizes;
};

// The value behind 'key': in the text of a Python dict that numpy wrote.
std::string_view value_behind(std::string_view text, const std::string& key, const std::string& path) {
  const size_t at = text.find("'" + key + "':");
  if (at == std::string_view::npos) refuse(path, "its header has no '" + key + "'");
  text.remove_prefix(at + key.size() + 3);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

NpyHeader npy_header(std::string_view text, const std::string& path) {
  const std::string_view order = value_behind(text, "fortran_order", path);
  if (!order.starts_with("False"))
    fail(ErrorKind::unsupported, "{}: columns come first (Fortran's order); expected rows first", printable_path(path));
  std::string_view descr = value_behind(text, "descr", path);
  NpyHeader out;
  if (!descr.starts_with('\'') || descr.find('\'', 1) == std::string_view::npos)
    fail(ErrorKind::unsupported, "{}: holds records; expected numbers of one type", printable_path(path));
  out.descr = descr.substr(1, descr.find('\'', 1) - 1);
  std::string_view shape = value_behind(text, "shape", path);
  if (!shape.starts_with('(') || shape.find(')') == std::string_view::npos) refuse(path, "its header has no shape");
  shape = shape.substr(1, shape.find(')') - 1);
  while (!shape.empty()) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), size);
    if (error != std::errc() || size < 0) refuse(path, "its shape is not one of whole numbers");
    out.sizes.push_back(size);
    shape.remove_prefix(static_cast<size_t>(end - shape.data()));
    shape.remove_prefix(std::min(shape.find_first_not_of(", "), shape.size()));
  }
  return out;
}

constexpr std::pair<std::string_view, DType> kNpyTypes[] = {
    {"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64}, {"u1", DType::u8},
    {"i1", DType::i8},  {"i4", DType::i32}, {"i8", DType::i64}, {"b1", DType::boolean}};
constexpr std::string_view kNoteSign = "  # ";

std::string_view npy_name(DType type) {
  for (const auto& [npy, known] : kNpyTypes)
    if (type == known) return npy;
  fail(ErrorKind::unsupported, "npy: there is no type for {}", name(type));
}

DType npy_type(const std::string& descr, const std::string& path) {
  for (const auto& [name, type] : kNpyTypes)
    if (descr.size() == 3 && descr.substr(1) == name) return type;
  fail(ErrorKind::unsupported, "{}: holds numbers of type {}; expected f2, f4, f8, u1, i1, i4, i8 or b1",
       printable_path(path), printable(descr));
}

}  // namespace

Tensor read_idx(const std::string& path) {
  const detail::FileBytes file = detail::read_unpacked(path);
  const Bytes bytes = file.bytes;
  if (bytes.size() < 4 || byte_at(bytes, 0) != 0 || byte_at(bytes, 1) != 0)
    refuse(path, "not an IDX file: it does not begin with two bytes of 0");
  const size_t axes = byte_at(bytes, 3), header = 4 + 4 * axes;
  if (bytes.size() < header) refuse(path, "ends within its header");
  std::vector<int64_t> sizes;
  for (size_t n = 0; n < axes; ++n) sizes.push_back(big_endian(bytes.subspan(4 + 4 * n, 4)));
  const Bytes rest = bytes.subspan(header);
  constexpr bool kTurned = std::endian::native == std::endian::little;
  const uint8_t type = byte_at(bytes, 2);
  constexpr std::pair<uint8_t, DType> kTypes[] = {
      {0x08, DType::u8}, {0x09, DType::i8}, {0x0C, DType::i32}, {0x0D, DType::f32}, {0x0E, DType::f64}};
  for (const auto& [code, known] : kTypes)
    if (type == code) return numbers(checked_shape(path, sizes, size_of(known), rest.size()), known, rest, kTurned);
  if (type != 0x0B) refuse(path, fmt::format("not an IDX file: its type is {:#04x}", type));
  const Tensor out = empty(checked_shape(path, sizes, 2, rest.size()), DType::i32);
  for (int64_t n = 0; n < out.count(); ++n)
    out.data<int32_t>()[n] = static_cast<int16_t>(big_endian(rest.subspan(static_cast<size_t>(2 * n), 2)));
  return out;
}

Tensor read_npy(const std::string& path) {
  const detail::FileBytes file = detail::read_unpacked(path);
  const Bytes bytes = file.bytes;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("\x93NUMPY") || text.size() < 12) refuse(path, "not a .npy file");
  const uint8_t version = byte_at(bytes, 6);
  if (version < 1 || version > 3) refuse(path, fmt::format("version {} of .npy; expected 1 to 3", version));
  const size_t counted = version == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t n = counted; n > 0; --n) length = length * 256 + byte_at(bytes, 7 + n);
  const size_t begin = 8 + counted;
  if (length > text.size() - begin) refuse(path, "ends within its header");
  const NpyHeader header = npy_header(text.substr(begin, length), path);
  const DType type = npy_type(header.descr, path);
  const Bytes rest = bytes.subspan(begin + length);
  constexpr char kOther = std::endian::native == std::endian::little ? '>' : '<';
  return numbers(checked_shape(path, header.sizes, size_of(type), rest.size()), type, rest, header.descr[0] == kOther);
}

std::string npy_prefix(const Shape& shape, DType type, std::string_view note) {
  check(note.find('\n') == std::string_view::npos, "npy: the note has a line break; expected one line");
  std::string sizes;
  for (int axis = 0; axis < shape.rank(); ++axis)
    sizes += fmt::format("{},{}", shape[axis], axis + 1 < shape.rank() ? " " : "");
  constexpr char kOrder = std::endian::native == std::endian::little ? '<' : '>';
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   size_of(type) == 1 ? '|' : kOrder, npy_name(type), sizes);
  if (!note.empty()) header += fmt::format("{}{}", kNoteSign, note);
  constexpr size_t kBefore = 10, kAlignment = 64;
  header.append(kAlignment - (kBefore + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  check(header.size() < 65536, "npy: a note of {} bytes does not fit", note.size());
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() % 256);
  out += static_cast<char>(header.size() / 256);
  return out + header;
}

void write_npy(const std::string& path, const Tensor& x, std::string_view note) {
  const Tensor dense = x.contiguous();
  const std::string prefix = npy_prefix(dense.shape(), dense.dtype(), note);
  write_durably(
      path, {std::as_bytes(std::span(prefix)), std::span(static_cast<const std::byte*>(dense.view().data),
                                                         static_cast<size_t>(dense.count() * size_of(dense.dtype())))});
}

std::string read_npy_note(const std::string& path) {
  const detail::FileBytes file = detail::map_file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  if (!text.starts_with(std::string_view("\x93NUMPY\x01", 7)) || text.size() < 10) return "";
  const size_t length = byte_at(file.bytes, 8) + 256 * size_t{byte_at(file.bytes, 9)};
  const std::string_view header = text.substr(10, length);
  const size_t at = header.find(kNoteSign);
  if (at == std::string_view::npos) return "";
  const std::string_view note = header.substr(at + kNoteSign.size());
  return std::string(note.substr(0, note.find_last_not_of(" \n") + 1));
}

}  // namespace mh
