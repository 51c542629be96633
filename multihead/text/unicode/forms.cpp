// Decomposition, order and composition over ICU's mappings, limited to what Hugging Face's tables know.
#include "multihead/text/unicode/forms.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

constexpr uint32_t kDottedCapitalI = 0x130;  // the one character whose own lower case is two
constexpr uint32_t kDotAbove = 0x307;

bool composes(Form form) { return form == Form::nfc || form == Form::nfkc; }
bool is_wide(Form form) { return form == Form::nfkc || form == Form::nfkd; }

const icu::Normalizer2& form_normaliser(bool wide) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* found =
      wide ? icu::Normalizer2::getNFKCInstance(code) : icu::Normalizer2::getNFCInstance(code);
  if (U_FAILURE(code)) fail(ErrorKind::internal, "tokenizer: ICU has no normaliser ({})", u_errorName(code));
  return *found;
}

const CodeSet& decomposed(bool wide) {
  static const CodeSet canonical(kDecomposed), compatible(kCompatible);
  return wide ? compatible : canonical;
}

std::optional<uint32_t> compose(uint32_t a, uint32_t b) {
  static const icu::Normalizer2& how = form_normaliser(false);
  const UChar32 found = how.composePair(static_cast<UChar32>(a), static_cast<UChar32>(b));
  if (found < 0 || !decomposed(false).contains(static_cast<uint32_t>(found))) return std::nullopt;
  return static_cast<uint32_t>(found);
}

// Decomposed, and each run of moving characters in the order of their classes; the changes go along.
std::vector<Changed> decompose(std::string_view text, Form form) {
  std::vector<Changed> out;
  out.reserve(text.size());
  std::vector<uint32_t> parts;
  size_t run = 0;  // where the characters that are not in order yet begin
  const auto settle = [&] {
    if (out.size() - run > 1)
      std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(run), out.end(),
                       [](const Changed& a, const Changed& b) {
                         return combining_class(a.character) < combining_class(b.character);
                       });
    run = out.size();
  };
  for (size_t at = 0; at < text.size();) {
    parts.clear();
    append_decomposed(next_character(text, at), form, parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      // A starter begins the run that the next characters are sorted in; having class 0 it stays its first.
      if (combining_class(parts[i]) == 0) settle();
      out.push_back({parts[i], i == 0 ? 0 : 1});
    }
  }
  settle();
  return out;
}

// Composes each starter with what follows and is not blocked.
std::vector<Changed> recompose(const std::vector<Changed>& apart) {
  std::vector<Changed> out;
  out.reserve(apart.size());
  size_t starter = apart.size();  // in `out`; beyond its end while there is none
  int last_class = -1;            // of what stands between the starter and here
  for (const Changed& next : apart) {
    const int of_next = combining_class(next.character);
    if (starter < out.size() && last_class < of_next) {
      if (const auto whole = compose(out[starter].character, next.character)) {
        out[starter] = {*whole, out[starter].change + next.change - 1};
        continue;
      }
    }
    out.push_back(next);
    if (of_next == 0) {
      starter = out.size() - 1;
      last_class = -1;
    } else if (starter < out.size()) {
      last_class = of_next;
    }
  }
  return out;
}

struct LowerCase {
  LowerCase() : lower(kLowerCase.back().last + 1) {
    for (size_t c = 0; c < lower.size(); ++c) lower[c] = static_cast<uint32_t>(c);
    for (const CaseRun& run : kLowerCase)
      for (uint32_t c = run.first; c <= run.last; c += run.step)
        lower[c] = static_cast<uint32_t>(static_cast<int32_t>(c) + run.distance);
    lower[kDottedCapitalI] = 'i';
  }
  std::vector<uint32_t> lower;
};

}  // namespace

uint8_t combining_class(uint32_t c) {
  static const CodeSet reordered(kReordered);
  return c >= 0x300 && reordered.contains(c) ? u_getCombiningClass(static_cast<UChar32>(c)) : 0;
}

void append_decomposed(uint32_t c, Form form, std::vector<uint32_t>& out) {
  const bool wide = is_wide(form);
  if (c < 0x80 || !decomposed(wide).contains(c)) {
    out.push_back(c);
    return;
  }
  icu::UnicodeString parts;
  if (!form_normaliser(wide).getDecomposition(static_cast<UChar32>(c), parts)) {
    out.push_back(c);
    return;
  }
  for (int32_t at = 0; at < parts.length(); at = parts.moveIndex32(at, 1))
    out.push_back(static_cast<uint32_t>(parts.char32At(at)));
}

bool surely_in_form(std::string_view text, Form form) {
  // Below U+0300 nothing combines, and NFC changes nothing there: in UTF-8 all lead bytes below 0xCC.
  const uint8_t first = form == Form::nfc ? 0xcc : 0x80;
  return std::all_of(text.begin(), text.end(), [&](char c) { return static_cast<uint8_t>(c) < first; });
}

std::vector<Changed> to_form(std::string_view text, Form form) {
  std::vector<Changed> apart = decompose(text, form);
  return composes(form) ? recompose(apart) : apart;
}

uint32_t lower_case(uint32_t c) {
  static const LowerCase table;
  return c < table.lower.size() ? table.lower[c] : c;
}

std::vector<Changed> to_lower(std::string_view text) {
  std::vector<Changed> out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = next_character(text, at);
    out.push_back({lower_case(c), 0});
    if (c == kDottedCapitalI) out.push_back({kDotAbove, 1});
  }
  return out;
}

}  // namespace mh::detail
