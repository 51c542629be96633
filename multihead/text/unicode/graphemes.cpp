// The rules of UAX 29, with Hugging Face's tables for what joins and ICU's for Hangul and pictures.
#include "multihead/text/unicode/graphemes.h"

#include <unicode/uchar.h>

#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

constexpr uint32_t kJoiner = 0x200d;

bool is_picture(uint32_t c) {
  return c >= 0xa9 && u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_EXTENDED_PICTOGRAPHIC);
}

// Whether `b` goes on with the Hangul syllable that `a` is in.
bool same_syllable(uint32_t a, uint32_t b) {
  if (a < 0x1100 || b < 0x1100 || a > 0xd7ff || b > 0xd7ff) return false;
  const auto kind = [](uint32_t c) {
    return u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_GRAPHEME_CLUSTER_BREAK);
  };
  const int first = kind(a), second = kind(b);
  if (first == U_GCB_L) return second == U_GCB_L || second == U_GCB_V || second == U_GCB_LV || second == U_GCB_LVT;
  if (first == U_GCB_V || first == U_GCB_LV) return second == U_GCB_V || second == U_GCB_T;
  return (first == U_GCB_T || first == U_GCB_LVT) && second == U_GCB_T;
}

}  // namespace

size_t grapheme_end(std::string_view text, size_t at) {
  static const CodeSet extend(kGraphemeExtend), prepend(kGraphemePrepend), control(kGraphemeControl);
  uint32_t before = next_character(text, at);
  if (before == '\r' && at < text.size() && text[at] == '\n') return at + 1;
  if (control.contains(before)) return at;
  bool picture = is_picture(before);
  while (at < text.size()) {
    size_t after = at;
    const uint32_t c = next_character(text, after);
    const bool extends = extend.contains(c);
    const bool joins = extends || (picture && before == kJoiner && is_picture(c)) || same_syllable(before, c) ||
                       (prepend.contains(before) && !control.contains(c));
    if (!joins) return at;
    if (!extends) picture = is_picture(c);
    before = c;
    at = after;
  }
  return at;
}

}  // namespace mh::detail
