// What a task is made from: files, tokenizer and model, as the sections of a configuration name them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "multihead/models/recurrent_json.h"
#include "multihead/text/tokenizer.h"

namespace mh {

// The defaults below are those of the file. What a key means, and what it may hold: docs/configuration.md.
enum class TokenizerKind { bpe, words, characters };

struct TokenizerConfig {
  std::string path{};  // an existing tokenizer.json; empty: one is learned from the training data
  TokenizerKind kind = TokenizerKind::bpe;
  int64_t min_count = 2;  // of words and characters
  int64_t vocabulary = 8000;
  bool lowercase = false;
  Normalisation normalise = Normalisation::none;
};

enum class TaskKind { translation, language_model, classify, tag, answer, recommend, image_class, speech_class };
enum class ClassWeights { none, balanced };
enum class LabelKind { one, several, number };  // of a text: a class; labels that do not exclude one another; a number

struct TaskConfig {
  TaskKind kind = TaskKind::translation;
  bool packed = true;    // of a language model: windows run across lines; else every line is for itself
  int64_t stride = 0;    // of a language model: tokens between the beginnings of windows that are scored; 0: no overlap
  int64_t samples = 3;   // texts that a language model writes at each validation
  std::string metric{};  // that is watched; empty: the task's own
  ClassWeights class_weights = ClassWeights::none;
  LabelKind labels = LabelKind::one;
};

// Of a model that reads one text, or one picture, as a whole. Below 0: model.dropout.
enum class Pooling { mean, first, none };  // none: every row of a text for itself
struct HeadConfig {
  Pooling pooling = Pooling::mean;
  double embedding_dropout = -1, classifier_dropout = -1;
  int64_t patch = 4;  // of pictures: pixels a side; of recordings: frames
};

// Of a language model's text: lines that end with </s> each, none of them blank; or the text as it is, where a line's
// break is a token of its own.
enum class TextLines { sentences, text };

enum class TableFormat { by_name, tsv, csv, jsonl };

struct DataConfig {
  std::string train{}, train_target{};  // a TSV file; or, with a target, two files whose lines belong together
  std::string valid{}, valid_target{};
  int64_t hold_out = 0;       // pairs or lines of train to validate with where `valid` is empty
  double hold_out_share = 0;  // the same as a share of them, where hold_out is 0
  TextLines lines = TextLines::sentences;
  int64_t source_column = 1, target_column = 2;
  // Of rows with a label: columns by number or name.
  std::string text = "1", label = "2", pair{};
  std::string label_separator = ",";               // where a text has several
  std::string user = "1", item = "2", time = "3";  // of histories; no time: the rows' order
  TableFormat format = TableFormat::by_name;
  bool header = false;
  int64_t max_broken = 100, examples_per_batch = 64;
  int64_t tokens_per_batch = 4096, window = 65536;
  int64_t max_length = 0;  // 0: model.max_length
  int64_t stride = 128;    // of an answerer's windows
  // Of pictures.
  int64_t image_size = 0;  // pixels a side; 0: as large as the first one
  int64_t shift = 0;
  bool flip = false;
  double colour_noise = 0;
  // Of recordings; shift is theirs, too.
  int64_t frames = 100, time_mask = 0, mel_mask = 0;

  bool validates() const { return !valid.empty() || hold_out > 0 || hold_out_share > 0; }
  // How many of so many examples are held out.
  int64_t held_out(int64_t examples) const {
    if (hold_out > 0 || hold_out_share == 0) return hold_out;
    return std::max<int64_t>(1, static_cast<int64_t>(hold_out_share * static_cast<double>(examples)));
  }
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
  HeadConfig head{};
  TokenizerConfig tokenizer{};
  DataConfig data{};
  float smoothing = 0;
  uint64_t seed = 1;
  std::string from{};            // model.from, for the tasks that read it themselves
  std::string tokenizer_file{};  // goes before tokenizer.path
  TaskEvents events{};

  int64_t max_length() const { return data.max_length == 0 ? model.max_length : data.max_length; }
};

inline bool reads_text_as_it_is(const TaskSetup& setup) {
  return setup.task.kind == TaskKind::language_model && setup.data.lines == TextLines::text;
}

}  // namespace mh
