// The keys a recurrent model has of its own; the others are read and written as the Transformer's are.
#include "multihead/models/recurrent_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "multihead/models/config_json.h"

namespace mh {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<const char*, Cell> kCells[] = {{"rnn", Cell::tanh}, {"lstm", Cell::lstm}, {"gru", Cell::gru}};
constexpr std::pair<const char*, PairAttention> kAttentions[] = {{"none", PairAttention::none},
                                                                 {"additive", PairAttention::additive},
                                                                 {"multiplicative", PairAttention::multiplicative}};

template <class Names, class T>
const char* word_of(const Names& names, T value) {
  for (const auto& [word, meaning] : names) {
    if (meaning == value) return word;
  }
  fail(ErrorKind::internal, "recurrent_to_json: {} has no name", static_cast<int>(value));
}

// Takes the key out of the object.
template <class Names, class T>
void take_word(Json& json, const char* key, const Names& names, T& place, const std::string& file) {
  const auto at = json.find(key);
  if (at == json.end()) return;
  bool known = false;
  for (const auto& [word, meaning] : names) {
    if (*at != word) continue;
    place = meaning;
    known = true;
  }
  if (!known)
    fail(ErrorKind::io, "{}: the model's '{}' is {}, which this version does not know", file, key,
         at->dump().substr(0, 80));
  json.erase(key);
}

}  // namespace

RecurrentConfig recurrent_config(const TransformerConfig& sizes, const RecurrentChoice& choice) {
  check(choice.is_recurrent(), "recurrent_config: the kind is not recurrent; expected rnn, lstm or gru");
  return {.cell = choice.kind == ModelKind::rnn    ? Cell::tanh
                  : choice.kind == ModelKind::lstm ? Cell::lstm
                                                   : Cell::gru,
          .attention = choice.attention,
          .vocabulary = sizes.vocabulary,
          .width = sizes.width,
          .hidden = choice.hidden,
          .encoder_layers = sizes.encoder_layers,
          .decoder_layers = sizes.decoder_layers,
          .dropout = sizes.dropout,
          .tied = sizes.tied,
          .max_length = sizes.max_length,
          .pad = sizes.pad,
          .begin = sizes.begin,
          .end = sizes.end};
}

TransformerConfig shared_sizes(const RecurrentConfig& config) {
  return {.vocabulary = config.vocabulary,
          .width = config.width,
          .encoder_layers = config.encoder_layers,
          .decoder_layers = config.decoder_layers,
          .dropout = config.dropout,
          .tied = config.tied,
          .max_length = config.max_length,
          .pad = config.pad,
          .begin = config.begin,
          .end = config.end};
}

RecurrentChoice recurrent_choice(const RecurrentConfig& config) {
  const ModelKind kind = config.cell == Cell::lstm  ? ModelKind::lstm
                         : config.cell == Cell::gru ? ModelKind::gru
                                                    : ModelKind::rnn;
  return {kind, config.attention, config.hidden};
}

std::string recurrent_to_json(const RecurrentConfig& config) {
  Json out{{"kind", word_of(kCells, config.cell)},
           {"attention", word_of(kAttentions, config.attention)},
           {"hidden", config.hidden}};
  const Json shared = Json::parse(config_to_json(shared_sizes(config)));
  for (const auto& [key, value] : shared.items()) {
    if (key != "kind" && key != "heads" && key != "feed_forward" && key != "norm" && key != "activation" &&
        key != "positions")
      out[key] = value;
  }
  return out.dump();
}

bool says_recurrent(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (!parsed.is_object()) return false;
  const auto kind = parsed.find("kind");
  return kind != parsed.end() && (*kind == "rnn" || *kind == "lstm" || *kind == "gru");
}

RecurrentConfig recurrent_from_json(std::string_view json, const std::string& name) {
  Json parsed = Json::parse(json, nullptr, false);
  if (!parsed.is_object()) fail(ErrorKind::io, "{}: the model's config is no JSON object", name);
  RecurrentConfig out;
  take_word(parsed, "kind", kCells, out.cell, name);
  take_word(parsed, "attention", kAttentions, out.attention, name);
  if (const auto hidden = parsed.find("hidden"); hidden != parsed.end()) {
    if (!hidden->is_number_integer() || *hidden < 1 || *hidden > 1 << 16)
      fail(ErrorKind::io, "{}: the model's 'hidden' is {}; expected an integer from 1 to {}", name,
           hidden->dump().substr(0, 80), 1 << 16);
    out.hidden = hidden->get<int64_t>();
    parsed.erase("hidden");
  }
  const RecurrentChoice choice{ModelKind::lstm, out.attention, out.hidden};
  const Cell cell = out.cell;
  out = recurrent_config(config_from_json(parsed.dump(), name), choice);
  out.cell = cell;
  return out;
}

}  // namespace mh
