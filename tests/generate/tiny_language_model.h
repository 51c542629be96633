// A folder with a language model of random weights, which writes any token.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "multihead/models/language_model_file.h"

namespace mh::test {

inline void write_language_model(const std::string& folder, int64_t max_length = 32) {
  std::filesystem::create_directories(folder);
  const Tokenizer tokenizer =
      train_bpe({"the cat sat on the mat", "a dog sat on the cat", "the man and the dog"}, {.vocabulary = 290});
  const TransformerConfig config{.vocabulary = tokenizer.size(),
                                 .width = 16,
                                 .heads = 2,
                                 .feed_forward = 24,
                                 .encoder_layers = 0,
                                 .decoder_layers = 2,
                                 .max_length = max_length};
  const DecoderOnly model(decoder_only_config(config), std::make_shared<ParamStore>(ParamStoreOptions{.seed = 9}));
  tokenizer.save(folder + "/tokenizer.json");
  save_language_model(folder, model, config, tokenizer);
}

}  // namespace mh::test
