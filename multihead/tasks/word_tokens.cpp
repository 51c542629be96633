// Words to tokens, one by one or as a sentence.
#include "multihead/tasks/word_tokens.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace mh {

namespace {

struct SpecialTokensAround {
  std::vector<int32_t> before{}, after{};
};

// What the tokenizer puts before and behind a text.
SpecialTokensAround tokens_around(const Tokenizer& tokenizer) {
  const std::vector<int32_t> plain = tokenizer.encode("a");
  const std::vector<int32_t> whole = tokenizer.encode_input("a", {.find_special = false}).ids;
  const auto at = std::search(whole.begin(), whole.end(), plain.begin(), plain.end());
  if (plain.empty() || at == whole.end()) return {};
  return {{whole.begin(), at}, {at + static_cast<int64_t>(plain.size()), whole.end()}};
}

}  // namespace

WordTokens encode_words(const Tokenizer& tokenizer, std::span<const std::string> words, int64_t max_length) {
  const int32_t unknown = tokenizer.id("[UNK]").value_or(tokenizer.id("<unk>").value_or(0));
  const SpecialTokensAround around = tokens_around(tokenizer);
  max_length = std::max<int64_t>(1, max_length - static_cast<int64_t>(around.after.size()));
  WordTokens out{.ids = around.before};
  for (const std::string& word : words) {
    std::vector<int32_t> ids = tokenizer.encode(word);
    if (ids.empty()) ids.push_back(unknown);
    if (static_cast<int64_t>(out.ids.size() + ids.size()) > max_length && !out.first.empty()) break;
    ids.resize(std::min(ids.size(),
                        static_cast<size_t>(std::max<int64_t>(1, max_length - static_cast<int64_t>(out.ids.size())))));
    out.first.push_back(static_cast<int64_t>(out.ids.size()));
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  }
  out.ids.insert(out.ids.end(), around.after.begin(), around.after.end());
  return out;
}

WordTokens encode_sentence(const Tokenizer& tokenizer, std::span<const std::string> words, int64_t max_length) {
  const int32_t unknown = tokenizer.id("[UNK]").value_or(tokenizer.id("<unk>").value_or(0));
  const std::string text = fmt::format("{}", fmt::join(words, " "));
  const Encoded whole = tokenizer.encode_input(text, {.find_special = false});
  const auto is_text = [](int8_t sequence) { return sequence == 0; };
  const auto begin = std::find_if(whole.sequences.begin(), whole.sequences.end(), is_text) - whole.sequences.begin();
  const auto rest = std::find_if(whole.sequences.rbegin(), whole.sequences.rend(), is_text) - whole.sequences.rbegin();
  const auto end = std::max<int64_t>(begin, static_cast<int64_t>(whole.ids.size()) - rest);
  const size_t room =
      static_cast<size_t>(std::max<int64_t>(begin + 1, max_length - (static_cast<int64_t>(whole.ids.size()) - end)));
  WordTokens out{.ids = {whole.ids.begin(), whole.ids.begin() + begin}};
  size_t word_end = 0;
  auto token = static_cast<size_t>(begin);
  for (size_t n = 0; n < words.size() && out.ids.size() < room; ++n) {
    word_end += words[n].size() + (n > 0 ? 1 : 0);
    const size_t first = out.ids.size();
    for (; token < static_cast<size_t>(end) && whole.offsets[token].end <= word_end; ++token)
      if (out.ids.size() < room) out.ids.push_back(whole.ids[token]);
    if (out.ids.size() == first) out.ids.push_back(unknown);
    out.first.push_back(static_cast<int64_t>(first));
  }
  out.ids.insert(out.ids.end(), whole.ids.begin() + end, whole.ids.end());
  return out;
}

}  // namespace mh
