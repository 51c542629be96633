// The reading of a tokenizer.json into a pipeline.
#include "multihead/base/error.h"
#include "multihead/text/pipeline/byte_level.h"
#include "multihead/text/pipeline/models/word_cache.h"
#include "multihead/text/pipeline/pipeline.h"

namespace mh::detail {
namespace {

std::vector<AddedToken> read_all_added(const JsonFields& top, TokenIds& ids) {
  std::vector<AddedToken> out;
  if (!top.find("added_tokens")) return out;
  const std::string where = top.where() + ": added_tokens";
  for (const JsonElement element : top.array("added_tokens")) {
    out.push_back(read_added_token(element, where));
    const auto [at, fresh] = ids.emplace(out.back().content, out.back().id);
    check(fresh || at->second == out.back().id, "{}: the token {} has two ids, {} and {}", where,
          in_quotes(out.back().content), at->second, out.back().id);
  }
  return out;
}

// Ids in order; refuses gaps and two tokens of one id.
void list_tokens(const TokenIds& ids, const std::string& where, Pipeline& out) {
  std::vector<bool> taken(ids.size());
  out.tokens.resize(ids.size());
  out.special.resize(ids.size());
  for (const auto& [token, id] : ids) {
    const auto at = static_cast<size_t>(id);
    check(at < ids.size() && !taken[at],
          "{}: the token {} has the id {}; expected the {} tokens to have the ids from 0 on, each its own", where,
          in_quotes(token), id, ids.size());
    taken[at] = true;
    out.tokens[at] = token;
  }
}

void place_added(const std::vector<AddedToken>& added, const std::string& where, Pipeline& out) {
  std::vector<std::pair<AddedToken, std::string>> raw, normalised;
  for (const AddedToken& token : added) {
    if (token.special) out.special[static_cast<size_t>(token.id)] = true;
    if (!token.normalized) {
      raw.emplace_back(token, token.content);
      continue;
    }
    Aligned spelling{.text = token.content};
    for (const NormaliseStep& step : out.normalise) step(spelling);
    check(!spelling.text.empty(), "{}: added_tokens: nothing is left of {} when it is normalised", where,
          in_quotes(token.content));
    out.tokens[static_cast<size_t>(token.id)] = spelling.text;  // Hugging Face's decode has this spelling, too
    normalised.emplace_back(token, std::move(spelling.text));
  }
  out.raw = AddedTokens(raw);
  out.normalised = AddedTokens(normalised);
}

// Lengths are the caller's affair (EncodeOptions); the file's are checked for their fields and not applied.
void check_lengths(const JsonFields& top) {
  if (const auto part = top.find("truncation"))
    JsonFields(*part, top.where() + ": truncation", {"direction", "max_length", "strategy", "stride"});
  if (const auto part = top.find("padding"))
    JsonFields(*part, top.where() + ": padding",
               {"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
}

}  // namespace

std::unique_ptr<Pipeline> read_pipeline(const JsonFields& top, std::string_view source) {
  const std::string& name = top.where();
  auto out = std::make_unique<Pipeline>();
  out->source = source;
  check_lengths(top);
  TokenIds ids;
  if (const auto part = top.find("normalizer")) read_normalisers(*part, name + ": normalizer", out->normalise);
  Splitters splitters;
  if (const auto part = top.find("pre_tokenizer")) read_splitters(*part, name + ": pre_tokenizer", splitters);
  ReadModel read = read_word_model(top.element("model"), name + ": model", splitters.bytes_at_end, ids);
  out->split = std::move(splitters.steps);
  if (splitters.bytes_at_end && read.words == WordsAre::text) out->split.push_back(spell_document);
  out->model = std::move(read.model);
  out->number = WordCache::next_model();
  const std::vector<AddedToken> added = read_all_added(top, ids);
  list_tokens(ids, name + ": model: vocab", *out);
  place_added(added, name, *out);
  if (const auto part = top.find("post_processor"))
    out->templates = read_templates(*part, name + ": post_processor", static_cast<int32_t>(ids.size()));
  if (!out->templates.trims.empty())
    for (const std::string& token : out->tokens) out->margins.push_back(find_margins(token));
  if (const auto part = top.find("decoder")) {
    read_decoders(*part, name + ": decoder", out->decoders);
    out->decodes = true;
  }
  return out;
}

}  // namespace mh::detail
