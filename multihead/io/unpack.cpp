// zlib's and liblzma's decoders behind one loop.
#include "multihead/io/unpack.h"

#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"

namespace mh::detail {

namespace {

// What a decoder is given at once, and the least room for what it gives: zlib counts in 32 bits.
constexpr size_t kAtOnce = size_t{1} << 30, kLeastRoom = size_t{1} << 16;

[[noreturn]] void damaged(const std::string& path, std::string_view packing, std::string_view how) {
  fail(ErrorKind::io, "cannot read {}: its {} data {}", printable_path(path), packing, how);
}

// The room behind what is written already.
struct Unpacked {
  std::vector<std::byte> bytes;
  size_t written = 0;

  std::span<std::byte> room() {
    if (bytes.size() - written < kLeastRoom) bytes.resize(std::max(2 * bytes.size(), written + kLeastRoom));
    return std::span(bytes).subspan(written, std::min(bytes.size() - written, kAtOnce));
  }
};

void inflate_members(std::span<std::byte> packed, const std::string& path, Unpacked& out) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();  // 16: gzip's header and sum
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream, inflateEnd);
  while (true) {
    const std::span<std::byte> room = out.room();
    const size_t given = std::min(packed.size(), kAtOnce);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    const int verdict = inflate(&stream, Z_NO_FLUSH);
    packed = packed.subspan(given - stream.avail_in);
    out.written += room.size() - stream.avail_out;
    if (verdict == Z_MEM_ERROR) throw std::bad_alloc();
    if (verdict == Z_BUF_ERROR && packed.empty()) damaged(path, "gzip", "end early");
    if (verdict != Z_OK && verdict != Z_STREAM_END) damaged(path, "gzip", "are damaged");
    if (verdict != Z_STREAM_END) continue;
    // As gzip does: further members follow, zeros are padding.
    if (std::all_of(packed.begin(), packed.end(), [](std::byte b) { return b == std::byte{0}; })) return;
    if (packing_of(packed) != "gzip") damaged(path, "gzip", "are followed by something else");
    inflateReset(&stream);
  }
}

void decode_xz(std::span<std::byte> packed, const std::string& path, Unpacked& out) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, std::numeric_limits<uint64_t>::max(), LZMA_CONCATENATED) != LZMA_OK)
    throw std::bad_alloc();
  const std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> ended(&stream, lzma_end);
  stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  while (true) {
    const std::span<std::byte> room = out.room();
    stream.next_out = reinterpret_cast<uint8_t*>(room.data());
    stream.avail_out = room.size();
    const lzma_ret verdict = lzma_code(&stream, LZMA_FINISH);
    out.written += room.size() - stream.avail_out;
    if (verdict == LZMA_STREAM_END) return;
    if (verdict == LZMA_MEM_ERROR) throw std::bad_alloc();
    if (verdict == LZMA_BUF_ERROR) damaged(path, "xz", "end early");
    if (verdict != LZMA_OK) damaged(path, "xz", "are damaged");
  }
}

}  // namespace

std::string_view packing_of(std::span<const std::byte> start) {
  using namespace std::string_view_literals;
  static constexpr std::pair<std::string_view, std::string_view> kStarts[] = {{"\x1F\x8B\x08"sv, "gzip"},
                                                                              {"\xFD\x37\x7A\x58\x5A\x00"sv, "xz"},
                                                                              {"\x28\xB5\x2F\xFD"sv, "zstd"},
                                                                              {"\x04\x22\x4D\x18"sv, "lz4"},
                                                                              {"PK\x03\x04"sv, "zip"}};
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  for (const auto& [bytes, name] : kStarts)
    if (text.starts_with(bytes)) return name;
  return text.starts_with("BZh") && text.substr(4).starts_with("1AY&SY") ? "bzip2" : "";
}

FileBytes read_unpacked(const std::string& path) {
  const FileBytes packed = read_file_or_pipe(path);
  const std::string_view packing = packing_of(packed.bytes);
  if (packing.empty()) return packed;
  const auto out = std::make_shared<Unpacked>();
  if (packing == "gzip") {
    inflate_members(packed.bytes, path, *out);
  } else if (packing == "xz") {
    decode_xz(packed.bytes, path, *out);
  } else {
    fail(ErrorKind::unsupported, "cannot read {}: it is compressed with {}; expected text, gzip or xz",
         printable_path(path), packing);
  }
  return {out, std::span(out->bytes).first(out->written)};
}

}  // namespace mh::detail
