// Chunks of RIFF, and samples to floats.
#include "multihead/io/sounds/wav_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"

namespace mh {

namespace {

using WavBytes = std::span<const std::byte>;

// Whole numbers stand in a WAV with their low byte first.
uint64_t little_endian(WavBytes bytes, size_t at, size_t count) {
  uint64_t out = 0;
  for (size_t n = count; n > 0; --n) out = out << 8 | std::to_integer<uint64_t>(bytes[at + n - 1]);
  return out;
}

struct WavFormat {
  uint64_t coding = 0, channels = 0, rate = 0, bits = 0;
};

[[noreturn]] void refuse_wav(const std::string& name, const std::string& why, ErrorKind kind = ErrorKind::io) {
  fail(kind, "{}: {}", printable_path(name), why);
}

WavFormat format_of(WavBytes chunk, const std::string& name) {
  constexpr uint64_t kExtensible = 0xFFFE;
  if (chunk.size() < 16) refuse_wav(name, "its format has fewer than 16 bytes");
  WavFormat out{.coding = little_endian(chunk, 0, 2),
                .channels = little_endian(chunk, 2, 2),
                .rate = little_endian(chunk, 4, 4),
                .bits = little_endian(chunk, 14, 2)};
  if (out.coding == kExtensible && chunk.size() >= 26) out.coding = little_endian(chunk, 24, 2);
  const bool whole = out.coding == 1 && (out.bits == 8 || out.bits == 16 || out.bits == 24 || out.bits == 32);
  const bool floats = out.coding == 3 && (out.bits == 32 || out.bits == 64);
  if (!whole && !floats)
    refuse_wav(name,
               fmt::format("coding {} of {} bits; expected PCM of 8, 16, 24 or 32 bits or floats of 32 or 64",
                           out.coding, out.bits),
               ErrorKind::unsupported);
  if (out.channels < 1 || out.channels > 64 || out.rate < 1 || out.rate > 1'000'000)
    refuse_wav(name, fmt::format("{} channels of {} samples a second; expected 1 to 64 of 1 to 1000000", out.channels,
                                 out.rate));
  return out;
}

double sample_at(WavBytes bytes, size_t at, const WavFormat& format) {
  const uint64_t raw = little_endian(bytes, at, format.bits / 8);
  if (format.coding == 3)
    return format.bits == 64 ? std::bit_cast<double>(raw) : std::bit_cast<float>(static_cast<uint32_t>(raw));
  if (format.bits == 8) return (static_cast<double>(raw) - 128) / 128;
  const auto high = static_cast<int64_t>(raw << (64 - format.bits));  // the sign at the top
  return std::ldexp(static_cast<double>(high), -63);
}

Sound sound_of(WavBytes data, const WavFormat& format, const std::string& name) {
  const size_t each = format.bits / 8, frame = each * format.channels, count = data.size() / frame;
  if (static_cast<int64_t>(count * format.channels) > kMostSamples)
    refuse_wav(name, fmt::format("{} samples; expected at most {}", count * format.channels, kMostSamples));
  if (count == 0) refuse_wav(name, "it holds no samples");
  Sound out{.rate = static_cast<int64_t>(format.rate), .samples = {}};
  out.samples.reserve(count);
  for (size_t n = 0; n < count; ++n) {
    double sum = 0;
    for (size_t c = 0; c < format.channels; ++c) sum += sample_at(data, n * frame + c * each, format);
    if (!std::isfinite(sum)) refuse_wav(name, fmt::format("sample {} is not finite", n + 1));
    out.samples.push_back(static_cast<float>(sum / static_cast<double>(format.channels)));
  }
  return out;
}

}  // namespace

Sound decode_wav(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (bytes.size() < 12 || !text.starts_with("RIFF") || text.substr(8, 4) != "WAVE")
    refuse_wav(name, bytes.empty() ? "an empty file; expected WAV" : "not a WAV file");
  std::optional<WavFormat> format;
  std::optional<WavBytes> data;
  for (size_t at = 12; at + 8 <= bytes.size() && !(format && data);) {
    const std::string_view kind = text.substr(at, 4);
    const uint64_t size = little_endian(bytes, at + 4, 4), there = bytes.size() - at - 8;
    const bool wanted = kind == "fmt " || kind == "data";
    if (wanted && size > there)
      refuse_wav(name, fmt::format("it ends early: {} bytes of '{}' are there; expected {}", there,
                                   kind == "data" ? "data" : "fmt", size));
    if (kind == "fmt ") format = format_of(bytes.subspan(at + 8, size), name);
    if (kind == "data") data = bytes.subspan(at + 8, size);
    at += 8 + std::min(there, size + size % 2);
  }
  if (!format || !data)
    refuse_wav(name, fmt::format("it ends early: it has no {}", format ? "samples" : "format of its samples"));
  return sound_of(*data, *format, name);
}

Sound read_wav(const std::string& path) {
  const detail::FileBytes file = detail::read_file(path);
  return decode_wav(file.bytes, path);
}

std::string encode_wav(const Sound& sound) {
  std::string out;
  const auto put = [&](uint64_t value, int bytes) {
    for (int n = 0; n < bytes; ++n) out += static_cast<char>(value >> (8 * n) & 0xFF);
  };
  const uint64_t size = 2 * sound.samples.size(), rate = static_cast<uint64_t>(sound.rate);
  check(size < (uint64_t{1} << 31), "encode_wav: {} samples do not fit", sound.samples.size());
  out += "RIFF";
  put(36 + size, 4);
  out += "WAVEfmt ";
  put(16, 4);
  put(1, 2);
  put(1, 2);
  put(rate, 4);
  put(2 * rate, 4);
  put(2, 2);
  put(16, 2);
  out += "data";
  put(size, 4);
  for (const float sample : sound.samples)
    put(static_cast<uint64_t>(std::llround(std::clamp(sample, -1.0F, 1.0F) * 32767.0F)) & 0xFFFF, 2);
  return out;
}

}  // namespace mh
