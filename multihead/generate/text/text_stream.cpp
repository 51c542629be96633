// The window of tokens that are decoded again.
#include "multihead/generate/text/text_stream.h"

#include <algorithm>

#include "multihead/text/unicode/utf8.h"

namespace mh::detail {

namespace {

constexpr size_t kContext = 6;       // tokens of the prompt that may change the text of the next
constexpr size_t kMostWaiting = 16;  // tokens that may wait for the rest of a character

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // what some decoders write for bytes they cannot read

bool is_unfinished(std::string_view text) {
  const auto fault = utf8_error(text);
  return (fault && text.size() - *fault < 4) || text.ends_with(kReplacement);
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt)
    : tokenizer_(tokenizer),
      window_(prompt.end() - static_cast<std::ptrdiff_t>(std::min(kContext, prompt.size())), prompt.end()),
      passed_on_(window_.size()),
      passed_(tokenizer.decode(window_)) {}

std::string_view TextStream::fresh(std::string_view text) const {
  const auto [old, first] = std::mismatch(passed_.begin(), passed_.end(), text.begin(), text.end());
  return {first, text.end()};
}

std::string TextStream::take(std::string_view text) {
  std::string out = whole_utf8(fresh(text));
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(passed_on_));
  passed_on_ = window_.size();
  passed_ = tokenizer_.decode(window_);
  return out;
}

std::string TextStream::add(int32_t id) {
  if (id >= tokenizer_.size()) return "";
  window_.push_back(id);
  const std::string text = tokenizer_.decode(window_);
  if (text.size() <= passed_.size()) return "";
  if (is_unfinished(fresh(text)) && window_.size() - passed_on_ < kMostWaiting) return "";
  return take(text);
}

std::string TextStream::rest() {
  const std::string text = tokenizer_.decode(window_);
  return text.size() > passed_.size() ? take(text) : "";
}

}  // namespace mh::detail
