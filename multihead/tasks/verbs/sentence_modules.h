// What a sentence-transformers folder does with the rows of its model: pooling, dense layers, normalisation, prompts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "multihead/models/pretrained/token_batch.h"
#include "multihead/ops/rows/activation.h"

namespace mh {

enum class TokenPooling { first, mean, max, mean_sqrt_length, weighted_mean, last };

struct DenseModule {
  Tensor weight{}, bias{};  // f32 (out, in), (out) or empty
  Activation activation = Activation::none;
};
struct NormaliseModule {};

struct SentenceModules {
  bool named = false;          // there is a modules.json; else: mean pooling, nothing after it
  std::string model_folder{};  // of config.json and the tokenizer
  std::vector<TokenPooling> pooling{TokenPooling::mean};  // several: one vector behind the other
  bool pools_prompt = true;                               // the prompt's tokens count too
  std::vector<std::variant<DenseModule, NormaliseModule>> after{};
  int64_t max_length = 0;                        // of sentence_bert_config.json; 0: none is named
  bool lowercase = false;                        // likewise
  std::map<std::string, std::string> prompts{};  // by name: "query", "document", …
  std::string default_prompt{}, similarity{};    // "cosine", "dot", …; empty: not named
};

// Throws: io, naming the file, where one is missing, breaks its format or leads out of the folder; unsupported for a
// module or an option that is not known.
SentenceModules read_sentence_modules(const std::string& folder);

// f32 (texts, width · poolings) of rows (tokens, width), without the first `skipped` rows of each text. A text that has
// no more rows than those counts with all of them.
Tensor pool_rows(const Tensor& rows, const Sequences& at, const std::vector<TokenPooling>& pooling, int64_t skipped);

// The modules after pooling. Normalisation divides by the length, or by 1e-12 where that is greater.
Tensor apply_modules(const SentenceModules& modules, Tensor vectors);

}  // namespace mh
