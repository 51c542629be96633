// The writing of those pieces.
#include "multihead/text/legacy/json_parts.h"

#include <sstream>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/models/word_model.h"

namespace mh::detail {
namespace {

constexpr std::string_view kMetaspaceSign = "\xe2\x96\x81";

OrderedJson template_side(const std::string& text, const SpecialTokens& specials, OrderedJson& used) {
  OrderedJson out = OrderedJson::array();
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool second = word.ends_with(":1");
    if (second) word.resize(word.size() - 2);
    const int type = second ? 1 : 0;
    if (word == "A" || word == "B") {
      out.push_back({{"Sequence", {{"id", word}, {"type_id", type}}}});
      continue;
    }
    for (const auto& [token, id] : specials)
      if (token == word) used[word] = {{"id", word}, {"ids", {id}}, {"tokens", {word}}};
    out.push_back({{"SpecialToken", {{"id", word}, {"type_id", type}}}});
  }
  return out;
}

}  // namespace

OrderedJson json_typed(std::string_view type) { return {{"type", type}}; }

OrderedJson json_sequence(std::string_view list, OrderedJson steps) {
  return {{"type", "Sequence"}, {list, std::move(steps)}};
}

OrderedJson json_metaspace(std::string_view scheme, bool split) {
  return {{"type", "Metaspace"}, {"replacement", kMetaspaceSign}, {"prepend_scheme", scheme}, {"split", split}};
}

OrderedJson json_replace(OrderedJson pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", std::move(pattern)}, {"content", content}};
}

OrderedJson json_byte_level(bool add_prefix_space) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", true}};
}

OrderedJson json_added(const SpecialTokens& specials) {
  OrderedJson out = OrderedJson::array();
  for (const auto& [token, id] : specials)
    out.push_back({{"id", id},
                   {"content", token},
                   {"single_word", false},
                   {"lstrip", token == "<mask>" || token == "[MASK]"},
                   {"rstrip", false},
                   {"normalized", false},
                   {"special", true}});
  return out;
}

OrderedJson json_template(const TemplateText& text, const SpecialTokens& specials) {
  OrderedJson used = OrderedJson::object();
  OrderedJson single = template_side(text.single, specials, used), pair = template_side(text.pair, specials, used);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", used}};
}

OrderedJson json_vocabulary(const std::vector<std::string>& tokens) {
  OrderedJson::object_t out;
  for (size_t i = 0; i < tokens.size(); ++i) out.emplace_back(tokens[i], i);
  return out;
}

std::string dump_tokenizer(TokenizerParts parts) {
  OrderedJson out;
  out["version"] = "1.0";
  out["truncation"] = nullptr;
  out["padding"] = nullptr;
  out["added_tokens"] = json_added(parts.specials);
  out["normalizer"] = std::move(parts.normaliser);
  out["pre_tokenizer"] = std::move(parts.splitter);
  out["post_processor"] = std::move(parts.post);
  out["decoder"] = std::move(parts.decoder);
  out["model"] = std::move(parts.model);
  return out.dump(2);
}

std::vector<std::string> read_vocabulary_json(std::string_view json, const std::string& where) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  check(parser.parse(json.data(), json.size()).get(object) == simdjson::SUCCESS, "{}: this is no JSON object", where);
  std::vector<std::string> out(object.size());
  for (const auto& [token, value] : object) {
    int64_t id = -1;
    check(value.get(id) == simdjson::SUCCESS && id >= 0 && static_cast<size_t>(id) < out.size() &&
              out[static_cast<size_t>(id)].empty() && !token.empty(),
          "{}: the token {} has no id of its own; expected 0 to {}", where, in_quotes(token), out.size() - 1);
    out[static_cast<size_t>(id)] = token;
  }
  return out;
}

}  // namespace mh::detail
