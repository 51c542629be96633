// The training of tokenizers whose tokens are words or characters.
#include "multihead/text/train_words.h"

#include <algorithm>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/text/legacy/json_parts.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/unicode/forms.h"

namespace mh {
namespace {

using Counts = std::unordered_map<std::string, int64_t>;

void check_words(const WordOptions& options) {
  const std::vector<std::string>& specials = options.specials;
  check(options.vocabulary > 0 && specials.size() <= static_cast<size_t>(options.vocabulary),
        "train_words: vocabulary is {}; expected room for {} specials", options.vocabulary, specials.size());
  check(options.min_frequency >= 1, "train_words: min_frequency is {}; expected 1 or more", options.min_frequency);
  for (size_t i = 0; i < specials.size(); ++i)
    check(!specials[i].empty() && std::find(specials.begin(), specials.begin() + static_cast<std::ptrdiff_t>(i),
                                            specials[i]) == specials.begin() + static_cast<std::ptrdiff_t>(i),
          "train_words: the special token '{}' is empty or given twice", specials[i]);
  const auto has = [&](std::string_view token) {
    return std::find(specials.begin(), specials.end(), token) != specials.end();
  };
  check(has(options.unknown), "train_words: the unknown token '{}' is not among the specials", options.unknown);
  check(!options.wraps || (has("[CLS]") && has("[SEP]")),
        "train_words: the special tokens lack [CLS] or [SEP], which stand around texts");
}

void count_line(const std::string& line, const WordOptions& options, Counts& counts) {
  std::string text = detail::repaired_utf8(line);
  if (options.lowercase) {
    std::string lower;
    for (const detail::Changed& one : detail::to_lower(text)) detail::append_character(one.character, lower);
    text = std::move(lower);
  }
  size_t word = 0;  // where the word began that goes on
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool space = detail::is_white_space(detail::next_character(text, at));
    if (options.unit == WordUnit::characters) {
      ++counts[text.substr(begin, at - begin)];
    } else if (space) {
      if (word < begin) ++counts[text.substr(word, begin - word)];
      word = at;
    }
  }
  if (options.unit == WordUnit::words && word < text.size()) ++counts[text.substr(word)];
}

std::vector<std::string> most_frequent(const Counts& counts, const WordOptions& options) {
  std::vector<std::pair<std::string, int64_t>> ordered;
  for (const auto& [word, count] : counts)
    if (count >= options.min_frequency) ordered.emplace_back(word, count);
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> out = options.specials;
  for (const auto& [word, count] : ordered) {
    if (out.size() == static_cast<size_t>(options.vocabulary)) break;
    if (std::find(options.specials.begin(), options.specials.end(), word) == options.specials.end())
      out.push_back(word);
  }
  return out;
}

}  // namespace

Tokenizer train_words(const std::vector<std::string>& lines, const WordOptions& options) {
  check_words(options);
  Counts counts;
  for (const std::string& line : lines) count_line(line, options, counts);
  const std::vector<std::string> tokens = most_frequent(counts, options);
  detail::TokenizerParts parts;
  for (size_t i = 0; i < options.specials.size(); ++i)
    parts.specials.emplace_back(options.specials[i], static_cast<int32_t>(i));
  if (options.lowercase) parts.normaliser = detail::json_typed("Lowercase");
  if (options.unit == WordUnit::words) {
    parts.splitter = detail::json_typed("WhitespaceSplit");
  } else {
    parts.splitter = {
        {"type", "Split"}, {"pattern", {{"Regex", "[\\s\\S]"}}}, {"behavior", "Isolated"}, {"invert", false}};
    parts.decoder = detail::json_typed("Fuse");
  }
  if (options.wraps) parts.post = detail::json_template({"[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1"}, parts.specials);
  parts.model = {{"type", "WordLevel"}, {"vocab", detail::json_vocabulary(tokens)}, {"unk_token", options.unknown}};
  return Tokenizer::parse(detail::dump_tokenizer(std::move(parts)), "train_words");
}

}  // namespace mh
