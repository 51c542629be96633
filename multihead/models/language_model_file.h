// A decoder-only model of our own in a folder: model.safetensors and tokenizer.json.
#pragma once

#include <string>

#include "multihead/models/decoder_only.h"
#include "multihead/text/tokenizer.h"

namespace mh {

struct LanguageModelFolder {
  Tokenizer tokenizer;
  TransformerConfig config;  // as it was trained with
  DecoderOnly model;
};

// Whether FOLDER/model.safetensors is there and is a language model.
bool is_language_model(const std::string& folder);

// `kind`: what the file says that it is, "language_model" or the name of another task whose model is a decoder alone.
// Throws: as Tokenizer::load and read_safetensors; io where it is another kind of model; invalid_argument where weights
// are missing, have another shape or have no use, or the tokenizer is not the model's.
LanguageModelFolder load_language_model(const std::string& folder, const std::string& kind = "language_model");

// FOLDER/model.safetensors, durably; `config` as decoder_only_config read it. Throws: io.
void save_language_model(const std::string& folder, const DecoderOnly& model, const TransformerConfig& config,
                         const Tokenizer& tokenizer, const std::string& kind = "language_model");

}  // namespace mh
