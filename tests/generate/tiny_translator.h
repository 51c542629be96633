// A translator's folder, with a tokenizer learned from a few lines and random weights.
#pragma once

#include <string>
#include <vector>

#include "multihead/models/model_file.h"
#include "multihead/text/tokenizer.h"
#include "tests/generate/tiny_model.h"

namespace mh::test {

inline void write_translator(const std::string& folder) {
  const Tokenizer tokenizer = train_bpe({"the cat sat on the mat", "the dog sat on the cat", "a cat and a dog"},
                                        {.vocabulary = 290, .min_frequency = 1});
  tokenizer.save(folder + "/tokenizer.json");
  save_transformer(folder + "/model.safetensors", tiny_model(tokenizer.size(), 3), {.tokenizer = tokenizer});
}

}  // namespace mh::test
