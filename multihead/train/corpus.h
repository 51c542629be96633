// What a run reads before its first step: the tokenizer and the pairs.
#pragma once

#include <string>

#include "multihead/train/config.h"
#include "multihead/train/dataset.h"
#include "multihead/train/events.h"

namespace mh {

struct Corpus {
  Tokenizer tokenizer{};
  Dataset train{};
  Dataset valid{};        // empty where the config neither names nor holds out any
  PairText valid_text{};  // likewise
};

// Reads the files the config names, loads the tokenizer of `tokenizer`, else of config.tokenizer.path, else learns one
// from both sides of the training pairs, and encodes. What was skipped goes to on_message. Throws: as PairText,
// Dataset, Tokenizer::load and train_bpe; invalid_argument where the tokenizer lacks the special tokens <pad>, <s>,
// </s> under the ids the model gives them, or has not as many tokens as config.model.vocabulary says.
Corpus read_corpus(const TrainConfig& config, const TrainEvents& events = {}, const std::string& tokenizer = {});

}  // namespace mh
