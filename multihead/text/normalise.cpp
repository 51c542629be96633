// Normalisation by ICU, run by run of well-formed text.
#include "multihead/text/normalise.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "multihead/base/error.h"

namespace mh::detail {
namespace {

constexpr UChar32 kCapitalDottedI = 0x130;  // the one character whose own lower case is two

bool ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

const icu::Normalizer2& normaliser(Normalisation form) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* found =
      form == Normalisation::nfc ? icu::Normalizer2::getNFCInstance(code) : icu::Normalizer2::getNFKCInstance(code);
  if (U_FAILURE(code)) fail(ErrorKind::internal, "tokenizer: ICU has no normaliser ({})", u_errorName(code));
  return *found;
}

void normalise_run(const icu::Normalizer2& how, std::string_view run, std::string& out) {
  UErrorCode code = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(&out);
  how.normalizeUTF8(0, icu::StringPiece(run.data(), static_cast<int32_t>(run.size())), sink, nullptr, code);
  if (U_FAILURE(code)) fail(ErrorKind::internal, "tokenizer: ICU could not normalise a text ({})", u_errorName(code));
}

void append(UChar32 c, std::string& out) {
  char buffer[U8_MAX_LENGTH];
  int32_t length = 0;
  U8_APPEND_UNSAFE(buffer, length, c);
  out.append(buffer, static_cast<size_t>(length));
}

}  // namespace

std::string normalise(std::string_view text, Normalisation form) {
  if (form == Normalisation::none || ascii(text)) return std::string(text);
  check(text.size() <= INT32_MAX, "tokenizer: a text of {} bytes cannot be normalised; expected less than 2 GiB",
        text.size());
  const icu::Normalizer2& how = normaliser(form);
  std::string out;
  size_t whole = 0;  // where the run of well-formed text began
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    UChar32 c = 0;
    U8_NEXT(text.data(), at, text.size(), c);
    if (c >= 0) continue;
    normalise_run(how, text.substr(whole, start - whole), out);
    out.append(text, start, at - start);
    whole = at;
  }
  normalise_run(how, text.substr(whole), out);
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    UChar32 c = 0;
    U8_NEXT(text.data(), at, text.size(), c);
    if (c < 0) {
      out.append(text, start, at - start);
    } else if (c == kCapitalDottedI) {
      append('i', out);
      append(0x307, out);
    } else {
      append(u_tolower(c), out);
    }
  }
  return out;
}

}  // namespace mh::detail
