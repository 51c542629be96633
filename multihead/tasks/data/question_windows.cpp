// Cuts contexts into windows, and finds answers in them.
#include "multihead/tasks/data/question_windows.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

std::vector<Encoded> question_windows(const Tokenizer& tokenizer, std::string_view question, std::string_view context,
                                      const WindowSizes& sizes, const std::string& name) {
  check(!utf8_error(question) && !utf8_error(context), "{} or its text is not UTF-8", name);
  const int64_t longest = sizes.max_length;
  const auto taken = static_cast<int64_t>(tokenizer.encode_pair(question, "").ids.size());
  check(taken < longest, "{} has {} tokens; expected fewer than {}, so that some of the text fits", name, taken,
        longest);
  const int64_t stride = std::min({sizes.stride, longest / 2, longest - taken - 1});
  std::vector<Encoded> out = tokenizer.encode_pair_windows(
      question, context, {.max_length = longest, .truncate = Truncate::only_second, .stride = stride});
  std::erase_if(out, [](const Encoded& window) { return window.ids.empty(); });
  return out;
}

WindowSpan answer_rows(const Encoded& window, const ContextSpan& answer) {
  int32_t first = -1, last = -1;
  size_t begin = 0, end = 0;  // of what the window has of the context
  bool any = false;
  for (size_t n = 0; n < window.ids.size(); ++n) {
    if (window.sequences[n] != 1) continue;
    const TextSpan& at = window.offsets[n];
    if (!any) begin = at.begin;
    any = true;
    end = at.end;
    if (first < 0 && at.end > answer.begin) first = static_cast<int32_t>(n);
    if (at.begin < answer.end) last = static_cast<int32_t>(n);
  }
  const bool whole = any && answer.begin < answer.end && begin <= answer.begin && answer.end <= end;
  return whole && 0 <= first && first <= last ? WindowSpan{first, last} : WindowSpan{};
}

}  // namespace mh
