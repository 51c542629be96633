// BertNormalizer: cleaning, spaces around Chinese characters, accents off, lower case.
#include "multihead/text/pipeline/normalisers.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/unicode/forms.h"

namespace mh::detail {
namespace {

void clean(Piece& piece) {
  static const CodeSet control(kBertControl);
  std::string out;
  out.reserve(piece.text.size());
  for (size_t at = 0; at < piece.text.size();) {
    const uint32_t c = next_character(piece.text, at);
    if (control.contains(c)) {
      piece.cut |= out.empty();
    } else {
      append_character(is_white_space(c) ? ' ' : c, out);
    }
  }
  piece.text = std::move(out);
}

// U+2B820 to U+2B91F are Chinese too, but not to Hugging Face's tokenizers.
bool is_chinese(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

void space_chinese(Piece& piece) {
  std::string out;
  out.reserve(piece.text.size());
  for (size_t at = 0; at < piece.text.size();) {
    const uint32_t c = next_character(piece.text, at);
    const bool chinese = is_chinese(c);
    if (chinese) out += ' ';
    append_character(c, out);
    if (chinese) out += ' ';
  }
  piece.text = std::move(out);
}

void drop_accents(Piece& piece) {
  static const CodeSet accents(kBertAccents);
  const std::string apart = to_form(piece.text, Form::nfd);
  piece.text.clear();
  for (size_t at = 0; at < apart.size();) {
    const uint32_t c = next_character(apart, at);
    if (accents.contains(c)) {
      piece.cut |= piece.text.empty();
    } else {
      append_character(c, piece.text);
    }
  }
}

}  // namespace

void BertNormaliser::operator()(Piece& piece) const {
  if (clean_text) clean(piece);
  if (chinese) space_chinese(piece);
  if (strip_accents) drop_accents(piece);
  if (lowercase) piece.text = to_lower(piece.text);
}

}  // namespace mh::detail
