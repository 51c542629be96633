// A run small enough for a test, and its data.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "multihead/base/random.h"
#include "multihead/train/config/config.h"
#include "tests/harness/temporary_folder.h"

namespace mh {

// Sentences of numbers and their words, one pair a line.
inline void write_pairs(const std::string& path, uint64_t seed, int count) {
  const char* words[] = {"null", "eins", "zwei", "drei", "vier", "sechs", "sieben", "acht"};
  Random random(seed);
  std::ofstream out(path);
  for (int n = 0; n < count; ++n) {
    std::string source, target;
    for (int64_t i = 1 + random.below(6); i > 0; --i) {
      const int64_t word = random.below(8);
      source += (source.empty() ? "" : " ") + std::to_string(word);
      target += (target.empty() ? "" : " ") + std::string(words[word]);
    }
    out << source << "\t" << target << "\n";
  }
}

// Pairs to train on and a configuration whose run takes a fraction of a second.
class SmallRun : public testing::Test {
 protected:
  SmallRun() {
    write_pairs(folder_ / "train.tsv", 1, 200);
    write_pairs(folder_ / "valid.tsv", 2, 20);
  }

  TrainConfig config(const std::string& output, int64_t steps = 12) const {
    TrainConfig c;
    c.model = {.vocabulary = 0,
               .width = 16,
               .heads = 2,
               .feed_forward = 24,
               .encoder_layers = 1,
               .decoder_layers = 1,
               .max_length = 32};
    c.tokenizer.vocabulary = 300;
    c.data.train = folder_ / "train.tsv";
    c.data.valid = folder_ / "valid.tsv";
    c.data.tokens_per_batch = 256;
    c.data.max_length = 32;
    c.train.output = folder_ / output;
    c.train.steps = steps;
    c.train.save_every = 3;
    c.train.validate_every = 4;
    c.train.ema = 0.9;
    c.optimizer.warmup = 4;
    return c;
  }

  TemporaryFolder folder_;
};

}  // namespace mh
