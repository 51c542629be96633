// Normal forms by ICU, run by run between characters that are newer than Hugging Face's tables.
#include "multihead/text/unicode/forms.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

constexpr uint32_t kFirstCombining = 0x300;  // characters before it are as old as Unicode
constexpr uint32_t kDottedCapitalI = 0x130;  // the one character whose own lower case is two

bool all_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

const icu::Normalizer2& form_normaliser(Form form) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* found = form == Form::nfc    ? icu::Normalizer2::getNFCInstance(code)
                                  : form == Form::nfd  ? icu::Normalizer2::getNFDInstance(code)
                                  : form == Form::nfkc ? icu::Normalizer2::getNFKCInstance(code)
                                                       : icu::Normalizer2::getNFKDInstance(code);
  if (U_FAILURE(code)) fail(ErrorKind::internal, "tokenizer: ICU has no normaliser ({})", u_errorName(code));
  return *found;
}

// Whether ICU knows something about `c` that Hugging Face's tables, of Unicode 9, do not.
bool is_newer(uint32_t c, Form form) {
  static const CodeSet decomposed(kDecomposed), compatible(kCompatible), reordered(kReordered);
  if (c < kFirstCombining) return false;
  if (c == 0x11930 || c == 0x11935) return true;  // compose to U+11938 since Unicode 13
  const auto icu = static_cast<UChar32>(c);
  const bool wide = form == Form::nfkc || form == Form::nfkd;
  const UProperty property = wide ? UCHAR_NFKD_QUICK_CHECK : UCHAR_NFD_QUICK_CHECK;
  if (u_getIntPropertyValue(icu, property) == UNORM_NO) return !(wide ? compatible : decomposed).contains(c);
  return u_getCombiningClass(icu) != 0 && !reordered.contains(c);
}

void append_run(const icu::Normalizer2& how, std::string_view run, std::string& out) {
  UErrorCode code = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(&out);
  how.normalizeUTF8(0, icu::StringPiece(run.data(), static_cast<int32_t>(run.size())), sink, nullptr, code);
  if (U_FAILURE(code)) fail(ErrorKind::internal, "tokenizer: ICU could not normalise a text ({})", u_errorName(code));
}

struct LowerCase {
  LowerCase() : lower(kLowerCase.back().last + 1) {
    for (size_t c = 0; c < lower.size(); ++c) lower[c] = static_cast<uint32_t>(c);
    for (const CaseRun& run : kLowerCase)
      for (uint32_t c = run.first; c <= run.last; c += run.step)
        lower[c] = static_cast<uint32_t>(static_cast<int32_t>(c) + run.distance);
  }
  std::vector<uint32_t> lower;
};

}  // namespace

std::string to_form(std::string_view text, Form form) {
  if (all_ascii(text)) return std::string(text);
  check(text.size() <= INT32_MAX, "tokenizer: a text of {} bytes cannot be normalised; expected less than 2 GiB",
        text.size());
  const icu::Normalizer2& how = form_normaliser(form);
  std::string out;
  size_t known = 0;  // where the run of known characters began
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    if (!is_newer(next_character(text, at), form)) continue;
    append_run(how, text.substr(known, start - known), out);
    out.append(text, start, at - start);
    known = at;
  }
  append_run(how, text.substr(known), out);
  return out;
}

std::string to_lower(std::string_view text) {
  static const LowerCase table;
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = next_character(text, at);
    if (c == kDottedCapitalI) {
      out += "i\xcc\x87";
    } else {
      append_character(c < table.lower.size() ? table.lower[c] : c, out);
    }
  }
  return out;
}

}  // namespace mh::detail
