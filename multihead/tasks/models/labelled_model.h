// A model with labels in a folder: model.safetensors and tokenizer.json; the labels stand in config.json, or in the
// metadata of a model of our own.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/tasks/data/labels.h"
#include "multihead/tasks/models/text_model.h"
#include "multihead/tasks/task_type.h"

namespace mh {

struct LabelledModel {
  Tokenizer tokenizer;
  TextModel model;
  Labels labels;
  int64_t max_length;  // of a text, in tokens: what the model's positions and the tokenizer's model_max_length allow
};

// `kind`: the task whose model it is, "classify" or "tag"; folders of Hugging Face's are told by their head. Throws: as
// Tokenizer::load and read_safetensors; io where it is another kind of model; invalid_argument where weights are
// missing or have another shape, or the tokenizer is not the model's.
LabelledModel load_labelled_model(const std::string& folder, const std::string& kind);

// Writes FOLDER/model.safetensors, durably; of a model of one of the families also config.json and
// tokenizer_config.json, so that transformers loads the folder.
void save_labelled_model(const std::string& folder, const std::string& kind, const TextModel& model,
                         const Labels& labels, const Tokenizer& tokenizer);

StartModel start_of_labelled_model(const std::string& path, const std::string& kind);

}  // namespace mh
