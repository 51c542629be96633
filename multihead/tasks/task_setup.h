// What a task is made from: files, tokenizer and model, as the sections of a configuration name them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "multihead/models/recurrent_json.h"
#include "multihead/text/tokenizer.h"

namespace mh {

// The defaults below are those of the file. What a key means, and what it may hold: docs/configuration.md.
struct TokenizerConfig {
  std::string path{};  // an existing tokenizer.json; empty: one is learned from the training data
  int64_t vocabulary = 8000;
  bool lowercase = false;
  Normalisation normalise = Normalisation::none;
};

enum class TaskKind { translation, language_model };

struct TaskConfig {
  TaskKind kind = TaskKind::translation;
  bool packed = true;   // of a language model: windows run across lines; else every line is for itself
  int64_t samples = 3;  // texts that a language model writes at each validation
};

struct DataConfig {
  std::string train{}, train_target{};  // a TSV file; or, with a target, two files whose lines belong together
  std::string valid{}, valid_target{};
  int64_t hold_out = 0;  // pairs or lines of train to validate with where `valid` is empty
  int64_t source_column = 1, target_column = 2;
  int64_t tokens_per_batch = 4096, window = 65536;
  int64_t max_length = 0;  // 0: model.max_length

  bool validates() const { return !valid.empty() || hold_out > 0; }
};

// Called on the thread that makes the task; those that are empty are not called.
struct TaskEvents {
  std::function<void(const std::string& text)> on_message{};                            // a sentence for the user
  std::function<void(const std::string& what, int64_t done, int64_t total)> on_wait{};  // "learning the tokenizer"
};

struct TaskSetup {
  TaskConfig task{};
  TransformerConfig model{.vocabulary = 0};  // 0: as many as the tokenizer has
  RecurrentChoice recurrent{};
  TokenizerConfig tokenizer{};
  DataConfig data{};
  float smoothing = 0;
  uint64_t seed = 1;
  std::string tokenizer_file{};  // goes before tokenizer.path
  TaskEvents events{};

  int64_t max_length() const { return data.max_length == 0 ? model.max_length : data.max_length; }
};

}  // namespace mh
