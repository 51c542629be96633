// A first configuration for somebody's own sentence pairs: `multihead train --suggest`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "multihead/train/config/config.h"

namespace mh {

// What was measured to be good for so many pairs; docs/choosing.md has the scores.
struct SizeAdvice {
  int64_t pairs;  // that it was measured with
  int64_t vocabulary, width, feed_forward, epochs, tokens_per_batch;
  double dropout, learning_rate;
  bool last_weights;  // better than those with the lowest validation loss
};

// The advice whose number of pairs is nearest, as a ratio.
const SizeAdvice& advice_for(int64_t pairs);

struct Suggestion {
  TrainConfig config{};
  std::string heading{};                                       // lines of a comment
  std::vector<std::pair<std::string, std::string>> reasons{};  // key, why it has its value; in the order of the file

  // A file for `multihead train`: every key that has a reason or is not at its default.
  std::string toml() const;
};

// For the pairs of given.data.train: the sizes of the model and the tokenizer, dropout, learning rate, epochs and
// batches by advice_for; the warm-up by the number of steps that makes; where given.data.valid is empty,
// pairs held out for validation. `overrides` ("model.width=512") go over what is given and over what is suggested.
// Throws: as PairText, train_bpe and read_config.
Suggestion suggest(const TrainConfig& given, const std::vector<std::string>& overrides = {});

}  // namespace mh
