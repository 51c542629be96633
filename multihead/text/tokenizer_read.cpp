// The reading of tokenizer.json, which may come from anywhere: what is not understood in full is refused.
#include <limits>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/read/json_fields.h"
#include "multihead/text/tokenizer_state.h"

namespace mh::detail {
namespace {

using Ids = std::unordered_map<std::string_view, int32_t>;

[[noreturn]] void unsupported(const std::string& where, std::string_view type, std::string_view expected) {
  fail(ErrorKind::unsupported, "{}: {} is not supported; expected {}", where, in_quotes(type), expected);
}

// The parts of a Sequence, or the one thing itself.
std::vector<JsonElement> steps(const JsonElement& element, const std::string& where, std::string_view list) {
  if (json_type(element, where) != "Sequence") return {element};
  std::vector<JsonElement> out;
  for (const JsonElement step : JsonFields(element, where, {"type", list}).array(list)) out.push_back(step);
  return out;
}

JsonFields byte_level(const JsonElement& element, const std::string& where) {
  const std::string_view type = json_type(element, where);
  if (type != "ByteLevel") unsupported(where, type, "ByteLevel");
  return {element, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"}};
}

void read_normaliser(const JsonElement& element, const std::string& where, TokenizerSpec& spec) {
  constexpr std::string_view kExpected = "NFC or NFKC, then Lowercase, then Prepend, each at most once";
  int place = 0;  // in that order
  const auto take = [&](int step, std::string_view type) {
    if (step <= place) unsupported(where, type, kExpected);
    place = step;
  };
  for (const JsonElement& step : steps(element, where, "normalizers")) {
    const std::string_view type = json_type(step, where);
    if (type == "NFC" || type == "NFKC") {
      take(1, type);
      spec.normalisation = type == "NFC" ? Normalisation::nfc : Normalisation::nfkc;
      JsonFields(step, where, {"type"});
    } else if (type == "Lowercase") {
      take(2, type);
      spec.lowercase = true;
      JsonFields(step, where, {"type"});
    } else if (type == "Prepend") {
      take(3, type);
      spec.prefix = PrefixSpace::always;
      const std::string_view what = JsonFields(step, where, {"type", "prepend"}).string("prepend");
      if (what != " ") unsupported(where + ": prepend", what, "one space");
    } else {
      unsupported(where, type, kExpected);
    }
  }
}

void read_pre_tokenizer(const JsonElement& element, const std::string& where, TokenizerSpec& spec) {
  const JsonFields fields = byte_level(element, where);
  if (!fields.flag("use_regex", true)) unsupported(where, "use_regex", "it to be true");
  if (fields.flag("add_prefix_space", true) && spec.prefix == PrefixSpace::none)
    spec.prefix = PrefixSpace::unless_there;
}

void read_decoder(const JsonElement& element, const std::string& where, TokenizerSpec& spec) {
  const std::vector<JsonElement> parts = steps(element, where, "decoders");
  if (parts.empty() || parts.size() > 2) unsupported(where, "Sequence", "ByteLevel, or ByteLevel and Strip");
  byte_level(parts[0], where);
  if (parts.size() == 1) return;
  const std::string_view type = json_type(parts[1], where);
  const JsonFields strip(parts[1], where, {"type", "content", "start", "stop"});
  if (type != "Strip" || strip.string("content") != " " || strip.integer("start") != 1 || strip.integer("stop") != 0)
    unsupported(where, type, "a Strip of one leading space behind ByteLevel");
  spec.strip_space = true;
}

// Takes `token` into the vocabulary; where it is there already, under the same id, all is well.
void add_token(Ids& ids, std::string_view token, int64_t id, const std::string& where) {
  check(id >= 0 && id < std::numeric_limits<int32_t>::max(), "{}: the token {} has the id {}; expected 0 to 2^31 - 2",
        where, in_quotes(token), id);
  const auto [at, fresh] = ids.emplace(token, static_cast<int32_t>(id));
  check(fresh || at->second == id, "{}: the token {} has two ids, {} and {}", where, in_quotes(token), at->second, id);
}

void read_vocabulary(const JsonFields& model, Ids& ids) {
  const std::string where = model.where() + ": vocab";
  for (const auto& [token, value] : model.object("vocab")) {
    int64_t id = 0;
    check(value.get(id) == simdjson::SUCCESS, "{}: the id of {} is not a whole number", where, in_quotes(token));
    check(!ids.contains(token), "{}: the token {} stands there twice", where, in_quotes(token));
    add_token(ids, token, id, where);
  }
}

void read_added_tokens(const JsonFields& top, Ids& ids, std::vector<std::string_view>& specials) {
  if (!top.find("added_tokens")) return;
  const std::string where = top.where() + ": added_tokens";
  for (const JsonElement added : top.array("added_tokens")) {
    const JsonFields fields(added, where,
                            {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const std::string_view token = fields.string("content");
    for (const char* name : {"single_word", "lstrip", "rstrip"})
      if (fields.flag(name, false)) unsupported(where, name, "it to be false");
    if (!fields.flag("special", false)) unsupported(where, token, "special tokens alone");
    fields.flag("normalized", true);  // of any value: it matters only where special tokens are looked for in text
    add_token(ids, token, fields.integer("id"), where);
    specials.push_back(token);
  }
}

// Ids in order; refuses gaps and two tokens of one id.
void place_tokens(const Ids& ids, const std::vector<std::string_view>& specials, const std::string& where,
                  TokenizerSpec& spec) {
  std::vector<bool> taken(ids.size());
  spec.tokens.resize(ids.size());
  spec.special.resize(ids.size());
  for (const auto& [token, id] : ids) {
    const auto at = static_cast<size_t>(id);
    check(at < ids.size() && !taken[at],
          "{}: the token {} has the id {}; expected the {} tokens to have the ids from 0 on, each its own", where,
          in_quotes(token), id, ids.size());
    taken[at] = true;
    spec.tokens[at] = token;
  }
  for (const std::string_view special : specials) spec.special[static_cast<size_t>(ids.at(special))] = true;
}

// The two parts of a merge: ["a", "b"], or "a b" as older files have it. Nothing where it is neither.
std::optional<std::pair<std::string_view, std::string_view>> merge_parts(const JsonElement& merge) {
  std::string_view left, right;
  simdjson::dom::array both;
  if (merge.get(both) == simdjson::SUCCESS) {
    if (both.size() != 2 || both.at(0).get(left) != simdjson::SUCCESS || both.at(1).get(right) != simdjson::SUCCESS)
      return std::nullopt;
    return std::pair(left, right);
  }
  if (merge.get(left) != simdjson::SUCCESS) return std::nullopt;
  const size_t space = left.find(' ');
  if (space == std::string_view::npos || left.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return std::pair(left.substr(0, space), left.substr(space + 1));
}

void read_merges(const JsonFields& model, const Ids& ids, TokenizerSpec& spec) {
  const std::string where = model.where() + ": merges";
  std::string result;
  const auto id_of = [&](std::string_view token) {
    const auto found = ids.find(token);
    check(found != ids.end(), "{}: number {} needs the token {}, which is not in the vocabulary", where,
          spec.merges.size(), in_quotes(token));
    return found->second;
  };
  for (const JsonElement merge : model.array("merges")) {
    const auto parts = merge_parts(merge);
    check(parts.has_value(), "{}: number {} is not a pair of tokens; expected [\"a\", \"b\"] or \"a b\"", where,
          spec.merges.size());
    result.assign(parts->first).append(parts->second);
    spec.merges.push_back({{id_of(parts->first), id_of(parts->second)}, id_of(result)});
  }
}

void read_model(const JsonFields& top, TokenizerSpec& spec) {
  const std::string where = top.where() + ": model";
  const JsonElement element = top.element("model");
  const JsonFields model(element, where,
                         {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                          "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (model.find("dropout")) unsupported(where, "dropout", "none");
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (model.find(name) && !model.string(name).empty()) unsupported(where, name, "none");
  if (model.flag("ignore_merges", false)) unsupported(where, "ignore_merges", "it to be false");
  // Every byte has a token, so the token for what is unknown never comes into play.
  if (model.find("unk_token")) model.string("unk_token");
  model.flag("fuse_unk", false);
  model.flag("byte_fallback", false);

  Ids ids;
  std::vector<std::string_view> specials;
  read_vocabulary(model, ids);
  read_added_tokens(top, ids, specials);
  place_tokens(ids, specials, where + ": vocab", spec);
  read_merges(model, ids, spec);
}

// A byte-level BPE that needs no steps. Throws: unsupported where it does need them.
TokenizerSpec read_plain(const JsonFields& top) {
  const std::string& name = top.where();
  for (const char* part : {"truncation", "padding", "post_processor"})
    if (top.find(part)) unsupported(name, part, "none");
  TokenizerSpec spec;
  if (const auto part = top.find("normalizer")) read_normaliser(*part, name + ": normalizer", spec);
  read_pre_tokenizer(top.element("pre_tokenizer"), name + ": pre_tokenizer", spec);
  read_decoder(top.element("decoder"), name + ": decoder", spec);
  read_model(top, spec);
  return spec;
}

// Whether the parts that a plain byte-level BPE always has are there.
bool may_be_plain(const JsonFields& top) {
  return json_type(top.element("model"), top.where() + ": model") == "BPE" && top.find("pre_tokenizer") &&
         top.find("decoder");
}

JsonFields top_fields(const JsonElement& document, const std::string& name) {
  const JsonFields top(document, name,
                       {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                        "post_processor", "decoder", "model"});
  if (const std::string_view version = top.string("version"); version != "1.0")
    unsupported(name + ": version", version, "1.0");
  return top;
}

JsonElement parse_json(simdjson::dom::parser& parser, std::string_view json, const std::string& name) {
  JsonElement document;
  const simdjson::error_code error = parser.parse(json.data(), json.size()).get(document);
  check(error == simdjson::SUCCESS, "{}: this is no JSON ({})", name, simdjson::error_message(error));
  return document;
}

}  // namespace

std::shared_ptr<const TokenizerState> read_tokenizer_json(std::string_view json, const std::string& name) {
  simdjson::dom::parser parser;
  const JsonFields top = top_fields(parse_json(parser, json, name), name);
  if (may_be_plain(top)) {
    try {
      return std::make_shared<const TokenizerState>(read_plain(top), name);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;  // else it is a file for the steps
    }
  }
  return std::make_shared<const TokenizerState>(read_pipeline(top, json));
}

std::unique_ptr<const Pipeline> parse_pipeline(std::string_view json, const std::string& name) {
  simdjson::dom::parser parser;
  return read_pipeline(top_fields(parse_json(parser, json, name), name), json);
}

}  // namespace mh::detail
