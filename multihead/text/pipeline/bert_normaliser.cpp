// BertNormalizer: cleaning, spaces around Chinese characters, accents off, lower case.
#include <algorithm>
#include <array>

#include "multihead/text/pipeline/normalisers.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/unicode/forms.h"

namespace mh::detail {
namespace {

// U+2B820 to U+2B91F are Chinese too, but not to Hugging Face's tokenizers.
bool is_chinese(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

const CodeSet& bert_accents() {
  static const CodeSet set(kBertAccents);
  return set;
}

// What one character becomes, whatever stands around it: characters, the first in its place; none where it vanishes.
// False where marks that stay might change their order with its neighbours'.
bool become(uint32_t c, const BertOptions& options, std::vector<uint32_t>& out) {
  static const CodeSet control(kBertControl);
  out.clear();
  if (options.clean_text && control.contains(c)) return true;
  if (options.clean_text && is_white_space(c)) c = ' ';
  const bool spaced = options.chinese && is_chinese(c);
  if (spaced) out.push_back(' ');
  if (options.strip_accents) {
    append_decomposed(c, Form::nfd, out);
    for (const uint32_t part : out)
      if (!bert_accents().contains(part) && combining_class(part) != 0) return false;
    std::erase_if(out, [](uint32_t part) { return bert_accents().contains(part); });
  } else {
    out.push_back(c);
  }
  if (spaced) out.push_back(' ');
  if (!options.lowercase) return true;
  if (std::find(out.begin(), out.end(), uint32_t{0x130}) != out.end()) return false;
  for (uint32_t& part : out) part = lower_case(part);
  return true;
}

// What each character of the first plane becomes: itself or another one; or an entry of `many`; or it depends.
class BertTable {
 public:
  static constexpr uint32_t kSize = 0x10000, kMany = 1u << 30, kDepends = 1u << 31;

  explicit BertTable(const BertOptions& options) : one_(kSize, kDepends) {
    std::vector<uint32_t> parts;
    for (uint32_t c = 0; c < kSize; ++c) {
      if (c >= 0xd800 && c < 0xe000) continue;
      if (!become(c, options, parts)) continue;
      if (parts.size() == 1) {
        one_[c] = parts[0];
      } else {
        one_[c] = kMany | static_cast<uint32_t>(many_.size());
        many_.push_back(parts);
      }
    }
    for (size_t c = 0; c < ascii_.size(); ++c)
      ascii_[c] = one_[c] < 0x80 ? static_cast<uint8_t>(one_[c]) : uint8_t{0xff};
  }

  uint32_t operator[](uint32_t c) const { return c < kSize ? one_[c] : kDepends; }
  uint8_t ascii(uint8_t c) const { return ascii_[c & 0x7f]; }  // 0xff where it is more than another letter
  const std::vector<uint32_t>& many(uint32_t entry) const { return many_[entry & ~kMany]; }

 private:
  std::vector<uint32_t> one_;
  std::array<uint8_t, 128> ascii_{};
  std::vector<std::vector<uint32_t>> many_;
};

// The steps one behind the other, for text in which order matters.
void step_by_step(Aligned& text, const BertOptions& options) {
  static const CodeSet control(kBertControl);
  std::vector<Changed> out;
  const auto each = [&](auto&& action) {
    out.clear();
    size_t first_dropped = 0;
    for (size_t at = 0; at < text.text.size();) action(next_character(text.text, at), first_dropped);
    set_characters(text, out, first_dropped);
  };
  const auto drop = [&](size_t& first_dropped) { out.empty() ? void(++first_dropped) : void(--out.back().change); };
  if (options.clean_text)
    each([&](uint32_t c, size_t& dropped) {
      control.contains(c) ? drop(dropped) : out.push_back({is_white_space(c) ? uint32_t{' '} : c, 0});
    });
  if (options.chinese)
    each([&](uint32_t c, size_t&) {
      if (is_chinese(c)) {
        for (const Changed one : {Changed{' ', 0}, Changed{c, 1}, Changed{' ', 1}}) out.push_back(one);
      } else {
        out.push_back({c, 0});
      }
    });
  if (options.strip_accents) {
    set_characters(text, to_form(text.text, Form::nfd));
    each([&](uint32_t c, size_t& dropped) { bert_accents().contains(c) ? drop(dropped) : out.push_back({c, 0}); });
  }
  if (options.lowercase) set_characters(text, to_lower(text.text));
}

// All steps in one pass; false, with nothing changed, where order matters.
bool in_one_pass(Aligned& text, const BertTable& table) {
  std::string out;
  const std::string& from = text.text;
  out.reserve(from.size() + from.size() / 8);
  std::vector<Origin> origins;
  bool moved = !text.in_place();
  const auto record = [&](size_t at, size_t end) {  // what was written since then came from there
    if (!moved && out.size() == end) return;
    if (!moved) {
      moved = true;
      Aligned before{.text = from.substr(0, at), .begin = text.begin};
      store_origins(before);
      origins = std::move(before.origins);
    }
    const Origin origin = text.in_place()
                              ? Origin{text.begin + static_cast<uint32_t>(at), text.begin + static_cast<uint32_t>(end)}
                              : text.origins[at];
    origins.resize(out.size(), origin);
  };
  for (size_t at = 0; at < from.size();) {
    const size_t begin = at;
    const auto byte = static_cast<uint8_t>(from[at]);
    if (byte < 0x80 && table.ascii(byte) != 0xff) {
      out.push_back(static_cast<char>(table.ascii(byte)));
      ++at;
      if (moved) record(begin, at);
      continue;
    }
    const uint32_t to = table[next_character(from, at)];
    if (to == BertTable::kDepends) return false;
    if (to & BertTable::kMany) {
      for (const uint32_t part : table.many(to)) append_character(part, out);
    } else {
      append_character(to, out);
    }
    record(begin, at);
  }
  text.text = std::move(out);
  if (moved) text.origins = std::move(origins);
  return true;
}

}  // namespace

NormaliseStep bert_normaliser(const BertOptions& options) {
  return [options, table = std::make_shared<const BertTable>(options)](Aligned& text) {
    if (!in_one_pass(text, *table)) step_by_step(text, options);
  };
}

}  // namespace mh::detail
