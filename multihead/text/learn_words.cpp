// Counting words, and the tokenizer.json that has them.
#include "multihead/text/learn_words.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/text/normalise.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

using Json = nlohmann::ordered_json;

Json special_tokens(const std::vector<std::string>& specials) {
  Json out = Json::array();
  for (size_t id = 0; id < specials.size(); ++id)
    out.push_back({{"id", id},
                   {"content", specials[id]},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", false},
                   {"special", true}});
  return out;
}

// A post-processor as BERT's files have it.
Json bert_template(const std::vector<std::string>& specials) {
  const auto piece = [](const char* kind, const char* id, int type) {
    return Json{{kind, {{"id", id}, {"type_id", type}}}};
  };
  const Json first = piece("SpecialToken", "[CLS]", 0), end = piece("SpecialToken", "[SEP]", 0);
  Json tokens;
  for (const char* name : {"[CLS]", "[SEP]"}) {
    const auto at = std::find(specials.begin(), specials.end(), name);
    check(at != specials.end(), "learn_words: the special tokens lack {}, which stands around texts", name);
    tokens[name] = {{"id", name}, {"ids", {at - specials.begin()}}, {"tokens", {name}}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({first, piece("Sequence", "A", 0), end})},
          {"pair", Json::array({first, piece("Sequence", "A", 0), end, piece("Sequence", "B", 1),
                                piece("SpecialToken", "[SEP]", 1)})},
          {"special_tokens", tokens}};
}

}  // namespace

// What the splitters Whitespace and Punctuation leave.
std::vector<std::string_view> words_of(std::string_view text) {
  static const detail::CodeSet word(detail::kWordOfPattern), punctuation(detail::kPunctuation);
  enum class Kind { none, space, word, sign, alone } before = Kind::none;
  std::vector<std::string_view> out;
  size_t begin = 0;
  const auto end_at = [&](size_t end) {
    if (end > begin && before != Kind::space) out.push_back(text.substr(begin, end - begin));
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    const uint32_t c = detail::next_character(text, at);
    const Kind kind = detail::is_white_space(c) ? Kind::space
                      : punctuation.contains(c) ? Kind::alone
                      : word.contains(c)        ? Kind::word
                                                : Kind::sign;
    if (kind != before || kind == Kind::alone) end_at(here);
    before = kind;
  }
  end_at(text.size());
  return out;
}

Tokenizer learn_words(const std::vector<std::string>& lines, const LearnWordsOptions& options) {
  check(options.min_count >= 1, "learn_words: min_count is {}; expected 1 or more", options.min_count);
  const auto& specials = options.specials;
  check(std::find(specials.begin(), specials.end(), options.unknown) != specials.end(),
        "learn_words: the special tokens lack {}, the one for unknown words", options.unknown);
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string& line : lines) {
    const std::string whole = utf8_error(line) ? detail::repaired_utf8(line) : line;
    const std::string cased = options.lowercase ? detail::lowercase(whole) : whole;
    for (const std::string_view word : words_of(cased)) ++counts[std::string(word)];
  }
  std::vector<std::pair<std::string, int64_t>> words;
  for (const auto& [word, count] : counts)
    if (count >= options.min_count && std::find(specials.begin(), specials.end(), word) == specials.end())
      words.emplace_back(word, count);
  std::sort(words.begin(), words.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });

  Json::object_t vocabulary;  // by emplace_back: a look-up for each of its keys would make writing quadratic
  for (const std::string& special : specials) vocabulary.emplace_back(special, vocabulary.size());
  for (const auto& [word, count] : words) vocabulary.emplace_back(word, vocabulary.size());
  const Json split = {
      {"type", "Sequence"},
      {"pretokenizers", Json::array({{{"type", "Whitespace"}}, {{"type", "Punctuation"}, {"behavior", "Isolated"}}})}};
  const Json file = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", special_tokens(specials)},
      {"normalizer", options.lowercase ? Json{{"type", "Lowercase"}} : Json(nullptr)},
      {"pre_tokenizer", split},
      {"post_processor", options.wraps ? bert_template(specials) : Json(nullptr)},
      {"decoder", nullptr},
      {"model", {{"type", "WordLevel"}, {"vocab", std::move(vocabulary)}, {"unk_token", options.unknown}}}};
  return Tokenizer::parse(file.dump(2), "learn_words");
}

}  // namespace mh
