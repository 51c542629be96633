// The algebra of ranges, and the properties that have names.
#include "multihead/text/pattern/code_ranges.h"

#include <algorithm>
#include <map>

namespace mh::detail {
namespace {

constexpr uint32_t kLast = 0x10ffff;
constexpr uint8_t kTurns = 30;
constexpr std::array<std::string_view, 30> kCategoryNames{"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl",
                                                          "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc",
                                                          "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cs", "Cn"};

CodeRanges of_table(std::span<const CodeRange> table) { return {table.begin(), table.end()}; }

void append_range(CodeRange range, CodeRanges& out) {
  if (!out.empty() && range.first <= out.back().last + 1) {
    out.back().last = std::max(out.back().last, range.last);
  } else {
    out.push_back(range);
  }
}

// All characters of the categories whose bits are set.
CodeRanges of_categories(uint32_t mask) {
  CodeRanges out;
  for (size_t i = 0; i < kCategories.size(); ++i) {
    const auto [first, category] = kCategories[i];
    const uint32_t last = i + 1 < kCategories.size() ? kCategories[i + 1].first - 1 : kLast;
    if (category != kTurns) {
      if (mask >> category & 1) append_range({first, last}, out);
      continue;
    }
    for (uint32_t c = first; c <= last; ++c)
      if (mask >> ((c - first) % 2) & 1) append_range({c, c}, out);
  }
  return out;
}

}  // namespace

CodeRanges unite(CodeRanges a, const CodeRanges& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end(), [](const CodeRange& x, const CodeRange& y) { return x.first < y.first; });
  CodeRanges out;
  for (const CodeRange& range : a) append_range(range, out);
  return out;
}

CodeRanges complement(const CodeRanges& a) {
  CodeRanges out;
  uint32_t next = 0;
  for (const CodeRange& range : a) {
    if (next < range.first) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) out.push_back({next, kLast});
  return out;
}

CodeRanges intersect(const CodeRanges& a, const CodeRanges& b) {
  return complement(unite(complement(a), complement(b)));
}

CodeRanges white_space_ranges() {
  return {{0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
          {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
}

CodeRanges word_ranges() {
  return intersect(unite(of_table(kWordOfPattern), of_table(kWordOfRegexToo)), complement(of_table(kNoWordOfRegex)));
}

std::optional<CodeRanges> property_ranges(std::string_view name) {
  if (name == "Han") return of_table(kHan);
  if (name == "Hiragana") return of_table(kHiragana);
  if (name == "Katakana") return of_table(kKatakana);
  if (name == "Hangul") return of_table(kHangul);
  if (name == "Any") return CodeRanges{{0, kLast}};
  uint32_t mask = 0;
  for (size_t i = 0; i < kCategoryNames.size(); ++i)
    if (kCategoryNames[i] == name || (name.size() == 1 && kCategoryNames[i][0] == name[0])) mask |= 1u << i;
  return mask != 0 ? std::optional(of_categories(mask)) : std::nullopt;
}

CodeTable::CodeTable(const CodeRanges& ranges) {
  std::vector<uint64_t> bits(kLast / 64 + 1);
  for (const CodeRange& range : ranges)
    for (uint32_t c = range.first; c <= range.last; ++c) bits[c / 64] |= uint64_t{1} << c % 64;
  ascii_ = {bits[0], bits[1]};
  std::map<Block, uint16_t> known;
  for (size_t at = 0; at < bits.size(); at += 4) {
    const Block block{bits[at], bits[at + 1], bits[at + 2], bits[at + 3]};
    const auto [found, fresh] = known.emplace(block, static_cast<uint16_t>(blocks_.size()));
    if (fresh) blocks_.push_back(block);
    places_.push_back(found->second);
  }
}

}  // namespace mh::detail
