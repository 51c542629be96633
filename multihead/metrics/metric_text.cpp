// Text as metrics see it.
//
// The tokenisers are chains of substitutions on pairs of neighbours, applied from left to right without overlap: what
// they do to odd input (two full stops in a row, a comma at the end) depends on that, and scores are compared to the
// digit.
#include "multihead/metrics/metric_text.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <utility>

namespace mh::detail {

namespace {

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_stop(char32_t c) { return c == '.' || c == ','; }

// ASCII punctuation but for ' , - . which are treated by their neighbours.
bool is_separate(char32_t c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool in_categories(char32_t c, uint32_t mask) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0; }
bool is_number(char32_t c) { return in_categories(c, U_GC_N_MASK); }
bool is_punctuation(char32_t c) { return in_categories(c, U_GC_P_MASK); }
bool is_symbol(char32_t c) { return in_categories(c, U_GC_S_MASK); }

// Ranges of sacreBLEU's zh tokeniser. Two of them it spells with five hexadecimal digits where four are read, so that
// they begin and end elsewhere than their authors meant: U+2001 to U+2A6D, quotation marks and dashes among them, and
// U+2F81 to U+2FA1. The scores people compare are made with these.
bool is_chinese(char32_t c) {
  static constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3000, 0x303F}, {0x3100, 0x312F},
      {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x32FF}, {0x3300, 0x33FF}, {0x3400, 0x4DB5}, {0x4E00, 0x9FBB},
      {0xF900, 0xFA2D}, {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

template <class Fits>
std::u32string set_apart(const std::u32string& text, Fits fits) {
  std::u32string out;
  for (const char32_t c : text) {
    if (fits(c)) {
      out += {U' ', c, U' '};
    } else {
      out += c;
    }
  }
  return out;
}

// Where two neighbours fit: "ab" becomes "a b " or " a b".
enum class Space { around_second, around_first };

template <class Fits>
std::u32string part_pairs(const std::u32string& text, Space space, Fits fits) {
  std::u32string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !fits(text[i], text[i + 1])) {
      out += text[i];
    } else if (space == Space::around_second) {
      out += {text[i], U' ', text[i + 1], U' '};
      ++i;
    } else {
      out += {U' ', text[i], U' ', text[i + 1]};
      ++i;
    }
  }
  return out;
}

void replace_all(std::u32string& text, std::u32string_view what, std::u32string_view with) {
  for (size_t at = text.find(what); at != std::u32string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

std::vector<std::u32string> western_tokens(const std::u32string& line) {
  std::u32string text = set_apart(line, is_separate);
  text = part_pairs(text, Space::around_second, [](char32_t a, char32_t b) { return !is_digit(a) && is_stop(b); });
  text = part_pairs(text, Space::around_first, [](char32_t a, char32_t b) { return is_stop(a) && !is_digit(b); });
  text = part_pairs(text, Space::around_second, [](char32_t a, char32_t b) { return is_digit(a) && b == '-'; });
  return split(text);
}

}  // namespace

std::u32string code_points(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = 0; at < size;) {
    UChar32 c = 0;
    U8_NEXT_OR_FFFD(bytes, at, size, c);
    out += static_cast<char32_t>(c);
  }
  return out;
}

std::string utf8(const std::u32string& text) {
  std::string out;
  icu::UnicodeString::fromUTF32(reinterpret_cast<const UChar32*>(text.data()), static_cast<int32_t>(text.size()))
      .toUTF8String(out);
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out;
  icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())})
      .toLower(icu::Locale::getRoot())
      .toUTF8String(out);
  return out;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

std::vector<std::u32string> split(const std::u32string& text) {
  std::vector<std::u32string> out;
  for (auto at = text.begin();;) {
    const auto begin = std::find_if_not(at, text.end(), is_space);
    if (begin == text.end()) return out;
    at = std::find_if(begin, text.end(), is_space);
    out.emplace_back(begin, at);
  }
}

std::vector<std::u32string> tokens_13a(std::u32string line) {
  replace_all(line, U"<skipped>", U"");
  replace_all(line, U"-\n", U"");
  replace_all(line, U"\n", U" ");
  replace_all(line, U"&quot;", U"\"");
  replace_all(line, U"&amp;", U"&");
  replace_all(line, U"&lt;", U"<");
  replace_all(line, U"&gt;", U">");
  return western_tokens(U" " + line + U" ");
}

std::vector<std::u32string> tokens_zh(const std::u32string& line) {
  const auto begin = std::find_if_not(line.begin(), line.end(), is_space);
  const auto end = std::find_if_not(line.rbegin(), std::make_reverse_iterator(begin), is_space).base();
  return western_tokens(set_apart({begin, end}, is_chinese));
}

std::vector<std::u32string> tokens_intl(const std::u32string& line) {
  std::u32string text =
      part_pairs(line, Space::around_second, [](char32_t a, char32_t b) { return !is_number(a) && is_punctuation(b); });
  text =
      part_pairs(text, Space::around_first, [](char32_t a, char32_t b) { return is_punctuation(a) && !is_number(b); });
  return split(set_apart(text, is_symbol));
}

std::vector<std::u32string> tokens_char(const std::u32string& line) {
  return split(set_apart(line, [](char32_t) { return true; }));
}

}  // namespace mh::detail
