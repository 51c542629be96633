// The table of GPT-2's characters for bytes, both ways.
#include "multihead/text/pipeline/models/byte_alphabet.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <numeric>

namespace mh::detail {
namespace {

constexpr int kCharacters = 256 + 68;  // 68 bytes are not printable

bool printed(int byte) { return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad); }

struct Alphabet {
  std::array<int, 256> code{};                 // by byte
  std::array<std::string, 256> text;           // by byte
  std::array<uint8_t, 256> ordered{};          // bytes by code
  std::array<int16_t, kCharacters> byte_of{};  // by code; -1 where none

  Alphabet() {
    byte_of.fill(-1);
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const auto at = static_cast<size_t>(byte);
      code[at] = printed(byte) ? byte : next++;
      byte_of[static_cast<size_t>(code[at])] = static_cast<int16_t>(byte);
      char buffer[U8_MAX_LENGTH];
      int32_t length = 0;
      U8_APPEND_UNSAFE(buffer, length, static_cast<UChar32>(code[at]));
      text[at].assign(buffer, static_cast<size_t>(length));
    }
    std::iota(ordered.begin(), ordered.end(), uint8_t{0});
    std::sort(ordered.begin(), ordered.end(), [&](uint8_t a, uint8_t b) { return code[a] < code[b]; });
  }
};

const Alphabet& alphabet() {
  static const Alphabet table;
  return table;
}

}  // namespace

const std::array<std::string, 256>& byte_characters() { return alphabet().text; }

const std::array<uint8_t, 256>& bytes_by_character() { return alphabet().ordered; }

std::string spell_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) out += alphabet().text[static_cast<uint8_t>(byte)];
  return out;
}

std::optional<std::string> read_bytes(std::string_view spelled) {
  std::string out;
  out.reserve(spelled.size());
  for (size_t at = 0; at < spelled.size();) {
    UChar32 c = 0;
    U8_NEXT(spelled.data(), at, spelled.size(), c);
    const int byte = c >= 0 && c < kCharacters ? alphabet().byte_of[static_cast<size_t>(c)] : -1;
    if (byte < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
  }
  return out;
}

}  // namespace mh::detail
