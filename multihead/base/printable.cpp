// Text from elsewhere, made fit to stand in a sentence.
#include "multihead/base/printable.h"

#include <algorithm>
#include <cstdint>

namespace mh {

namespace {

// Bytes of the UTF-8 character that `text` begins with; 0 where it begins with none.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80 ? 1 : (first & 0xE0) == 0xC0 ? 2 : (first & 0xF0) == 0xE0 ? 3 : 4;
  if (length == 1) return 1;
  if ((length == 4 && (first & 0xF8) != 0xF0) || text.size() < length) return 0;
  uint32_t code = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  return code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : length;
}

// C0, DEL, and C1, which terminals obey too.
bool is_control(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  return first < 0x20 || first == 0x7F || (first == 0xC2 && static_cast<uint8_t>(character[1]) < 0xA0);
}

}  // namespace

std::string Printable::quoted() const {
  std::string out = "'";
  for (size_t at = 0; at < text.size();) {
    const size_t length = character(text.substr(at));
    const std::string_view piece = text.substr(at, std::max<size_t>(length, 1));
    if (at + piece.size() > longest) return out + "…'";
    if (length == 0 || is_control(piece)) {
      for (const char c : piece) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    } else {
      out += piece;
    }
    at += piece.size();
  }
  return out + "'";
}

}  // namespace mh
