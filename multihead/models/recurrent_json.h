// A recurrent model's choices: as keys of a training config, and as JSON in the file of its weights.
#pragma once

#include <string>
#include <string_view>

#include "multihead/models/recurrent_seq2seq.h"

namespace mh {

// What a model is made of.
enum class ModelKind : uint8_t { transformer, rnn, lstm, gru, bert, distilbert, modernbert };

// What [model] says besides the keys that a recurrent net shares with the Transformer.
struct RecurrentChoice {
  ModelKind kind = ModelKind::transformer;
  PairAttention attention = PairAttention::multiplicative;
  int64_t hidden = 512;

  bool is_recurrent() const { return kind == ModelKind::rnn || kind == ModelKind::lstm || kind == ModelKind::gru; }
  // Of the families of models/families.h, "bert"; empty for the others.
  std::string family() const {
    return kind == ModelKind::bert         ? "bert"
           : kind == ModelKind::distilbert ? "distilbert"
           : kind == ModelKind::modernbert ? "modernbert"
                                           : "";
  }
};

// Vocabulary, width, layers, dropout, tied, max_length and tokens are those of `sizes`. Throws: invalid_argument where
// the kind is none of the recurrent ones.
RecurrentConfig recurrent_config(const TransformerConfig& sizes, const RecurrentChoice& choice);
// And back: what it shares with the Transformer, and what is its own.
TransformerConfig shared_sizes(const RecurrentConfig& config);
RecurrentChoice recurrent_choice(const RecurrentConfig& config);

// {"kind": "lstm", "attention": "additive", "hidden": 512, "vocabulary": 8000, …}.
std::string recurrent_to_json(const RecurrentConfig& config);
// Whether the text is such a config.
bool says_recurrent(std::string_view json);
// Throws: as config_from_json.
RecurrentConfig recurrent_from_json(std::string_view json, const std::string& name);

}  // namespace mh
