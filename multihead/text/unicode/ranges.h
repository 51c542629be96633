// Classes of characters as Hugging Face's tokenizers have them, as sorted ranges: tools/unicode_tables writes them.
#pragma once

#include <cstdint>
#include <span>

namespace mh::detail {

struct CodeRange {
  uint32_t first, last;
};

// Every `step`-th character from `first` to `last` has its lower case `distance` further on.
struct CaseRun {
  uint32_t first, last, step;
  int32_t distance;
};

extern const std::span<const CodeRange> kBertControl;      // what clean_text drops
extern const std::span<const CodeRange> kBertAccents;      // what BertNormalizer's strip_accents drops
extern const std::span<const CodeRange> kPunctuation;      // of BertPreTokenizer and Punctuation
extern const std::span<const CodeRange> kWordOfPattern;    // \w of the splitter Whitespace
extern const std::span<const CodeRange> kWordBesideToken;  // what an added token of single_word must not touch
extern const std::span<const CodeRange> kNumeric;          // of Digits
extern const std::span<const CodeRange> kAccents;          // what StripAccents drops
extern const std::span<const CodeRange> kDecomposed;       // what NFD changes
extern const std::span<const CodeRange> kCompatible;       // what NFKD changes
extern const std::span<const CodeRange> kReordered;        // combining classes other than 0
extern const std::span<const CaseRun> kLowerCase;

// From `first` to where the next run begins: Category's number, or kTurns: Lu and Ll in turn, from an Lu on.
struct CategoryRun {
  uint32_t first;
  uint8_t category;
};

extern const std::span<const CategoryRun> kCategories;
extern const std::span<const CodeRange> kWordOfRegexToo, kNoWordOfRegex;  // how \w differs from kWordOfPattern
extern const std::span<const CodeRange> kGraphemeExtend, kGraphemePrepend, kGraphemeControl;
extern const std::span<const CodeRange> kHan, kHiragana, kKatakana, kHangul;

}  // namespace mh::detail
