// How good a model is on pairs it has not seen.
#pragma once

#include <cstdint>

#include "multihead/models/transformer.h"
#include "multihead/text/tokenizer.h"
#include "multihead/train/dataset.h"

namespace mh {

struct ValidationOptions {
  int64_t tokens_per_batch = 4096;
  int64_t sentences = 0;  // how many are translated for BLEU and chrF, greedily; 0: none
  DType compute = DType::f32;
};

struct Validation {
  double loss = 0, perplexity = 0;  // of the plain negative log-likelihood a token
  double bleu = -1, chrf = -1;      // where sentences were translated: not by a model whose scores are not finite
};

// `data` holds the pairs of `text` as ids. Lays the model's weights out for inference.
Validation validate(Transformer& model, const Tokenizer& tokenizer, const PairText& text, const Dataset& data,
                    const ValidationOptions& options);

}  // namespace mh
