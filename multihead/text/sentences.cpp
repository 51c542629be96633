// ICU's sentence boundaries, and which of them are taken back.
#include "multihead/text/sentences.h"

#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "multihead/base/error.h"

namespace mh {

namespace {

// What a full stop behind does not end a sentence; in lower case, without their last full stop.
constexpr std::array<std::string_view, 44> kAbbreviations{
    "adm",  "approx", "apt",  "art", "ave", "bros", "bzw", "ca", "capt", "co",  "col", "dept", "dr",  "ed",  "etc",
    "evtl", "fig",    "fr",   "ggf", "gen", "geb",  "gov", "hr", "jr",   "lt",  "ltd", "mr",   "mrs", "ms",  "mt",
    "nr",   "pp",     "prof", "rev", "sen", "sgt",  "sr",  "st", "str",  "tel", "vgl", "vol",  "vs",  "zzgl"};
// These end a sentence as often as not, and what follows tells: a capital begins another one.
constexpr std::array<std::string_view, 4> kHours{"a.m", "p.m", "A.M", "P.M"};
constexpr std::array<std::string_view, 7> kQuotationMarks{"\"", "'", "”", "’", "“", "»", "«"};

UChar32 next_character(std::string_view text, size_t& at) {
  UChar32 character = 0;
  U8_NEXT(text.data(), at, text.size(), character);
  return character;
}

bool is_space(UChar32 character) { return character >= 0 && u_isUWhiteSpace(character); }

// The bytes of white space at the beginning of `text`.
size_t leading_space(std::string_view text) {
  size_t at = 0;
  for (size_t next = 0; next < text.size(); at = next)
    if (!is_space(next_character(text, next))) return at;
  return at;
}

std::string_view without_space_behind(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();)
    if (!is_space(next_character(text, at))) end = at;
  return text.substr(0, end);
}

bool has_word(std::string_view text) {
  for (size_t at = 0; at < text.size();)
    if (const UChar32 character = next_character(text, at); character >= 0 && u_isalnum(character)) return true;
  return false;
}

bool begins_in_lower_case(std::string_view text) {
  size_t at = 0;
  return !text.empty() && u_islower(next_character(text, at));
}

bool is_abbreviation(std::string_view word) {  // without its last full stop
  if (word.empty() || std::find(kHours.begin(), kHours.end(), word) != kHours.end()) return false;
  size_t characters = 0, digits = 0;
  bool dotted = false;
  for (size_t at = 0; at < word.size(); ++characters) {
    const UChar32 character = next_character(word, at);
    digits += character >= 0 && u_isdigit(character) ? 1 : 0;
    dotted = dotted || character == '.';
  }
  if (digits > 0) return digits == characters && characters <= 2;
  if (characters == 1) return !has_word(word) ? false : word != "I" && word != "i";
  if (dotted) return word.find("..") == std::string_view::npos && word.size() <= 6;
  std::string small(word);
  std::transform(small.begin(), small.end(), small.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return std::find(kAbbreviations.begin(), kAbbreviations.end(), small) != kAbbreviations.end();
}

bool ends_with_abbreviation(std::string_view sentence) {
  if (!sentence.ends_with('.')) return false;
  sentence.remove_suffix(1);
  const size_t space = sentence.find_last_of(" \t\n(\"'");
  return is_abbreviation(space == std::string_view::npos ? sentence : sentence.substr(space + 1));
}

bool ends_with_quotation(std::string_view sentence) {
  return std::any_of(kQuotationMarks.begin(), kQuotationMarks.end(),
                     [&](std::string_view mark) { return sentence.ends_with(mark); });
}

// Whether the sentence goes on past the boundary before `next`. A line's end is never within a sentence.
bool goes_on(std::string_view sentence, std::string_view space, std::string_view next) {
  if (space.find_first_of("\n\r") != std::string_view::npos) return false;
  return !has_word(next) || !has_word(sentence) || ends_with_abbreviation(sentence) ||
         (ends_with_quotation(sentence) && begins_in_lower_case(next));
}

// Made once for each thread: reading the rules takes longer than a line.
UBreakIterator* breaks_of_thread(UErrorCode& error) {
  thread_local const std::unique_ptr<UBreakIterator, decltype(&ubrk_close)> own(
      ubrk_open(UBRK_SENTENCE, "en", nullptr, 0, &error), ubrk_close);
  return own.get();
}

std::vector<size_t> boundaries(std::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  UBreakIterator* breaks = breaks_of_thread(error);
  const std::unique_ptr<UText, decltype(&utext_close)> units(
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &error), utext_close);
  if (breaks && U_SUCCESS(error)) ubrk_setUText(breaks, units.get(), &error);
  if (!breaks || U_FAILURE(error))
    fail(ErrorKind::internal, "sentences: ICU cannot find the ends of sentences ({})", u_errorName(error));
  std::vector<size_t> out;
  for (int32_t at = ubrk_next(breaks); at != UBRK_DONE; at = ubrk_next(breaks)) out.push_back(static_cast<size_t>(at));
  return out;
}

}  // namespace

std::vector<SentenceSpan> sentences(std::string_view text) {
  std::vector<SentenceSpan> out;
  size_t begin = 0;  // of the white space before the next sentence
  for (const size_t end : boundaries(text)) {
    const std::string_view piece = text.substr(begin, end - begin);
    const std::string_view space = piece.substr(0, leading_space(piece));
    const std::string_view words = without_space_behind(piece.substr(space.size()));
    if (words.empty()) continue;
    if (!out.empty() && goes_on(out.back().text, space, words)) {
      std::string_view& whole = out.back().text;
      whole = {whole.data(), static_cast<size_t>(words.data() + words.size() - whole.data())};
    } else {
      out.push_back({space, words});
    }
    begin += space.size() + words.size();
  }
  return out;
}

}  // namespace mh
