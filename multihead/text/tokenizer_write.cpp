// The writing of tokenizer.json: every key, in the order and layout of Hugging Face's `tokenizers`.
#include <nlohmann/json.hpp>

#include "multihead/text/tokenizer_state.h"

namespace mh::detail {
namespace {

using Json = nlohmann::ordered_json;

Json byte_level(bool add_prefix_space) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", true}};
}

Json added_tokens(const TokenizerSpec& spec) {
  Json out = Json::array();
  for (size_t i = 0; i < spec.tokens.size(); ++i)
    if (spec.special[i])
      out.push_back({{"id", i},
                     {"content", spec.tokens[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return out;
}

Json normaliser(const TokenizerSpec& spec) {
  Json steps = Json::array();
  if (spec.normalisation != Normalisation::none)
    steps.push_back({{"type", spec.normalisation == Normalisation::nfc ? "NFC" : "NFKC"}});
  if (spec.lowercase) steps.push_back({{"type", "Lowercase"}});
  if (spec.prefix == PrefixSpace::always) steps.push_back({{"type", "Prepend"}, {"prepend", " "}});
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return steps[0];
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

Json decoder(const TokenizerSpec& spec) {
  if (!spec.strip_space) return byte_level(true);
  const Json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  return {{"type", "Sequence"}, {"decoders", Json::array({byte_level(true), strip})}};
}

Json model(const TokenizerSpec& spec) {
  Json::object_t vocabulary;  // by emplace_back: a look-up for each of its keys would make writing quadratic
  for (size_t i = 0; i < spec.tokens.size(); ++i) vocabulary.emplace_back(spec.tokens[i], i);
  Json merges = Json::array();
  for (const Merge& merge : spec.merges)
    merges.push_back(Json::array(
        {spec.tokens[static_cast<size_t>(merge.pair.left)], spec.tokens[static_cast<size_t>(merge.pair.right)]}));
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

}  // namespace

std::string write_tokenizer_json(const TokenizerSpec& spec) {
  Json out;
  out["version"] = "1.0";
  out["truncation"] = nullptr;
  out["padding"] = nullptr;
  out["added_tokens"] = added_tokens(spec);
  out["normalizer"] = normaliser(spec);
  out["pre_tokenizer"] = byte_level(spec.prefix == PrefixSpace::unless_there);
  out["post_processor"] = nullptr;
  out["decoder"] = decoder(spec);
  out["model"] = model(spec);
  return out.dump(2);
}

}  // namespace mh::detail
