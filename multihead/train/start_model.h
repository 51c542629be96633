// The model whose weights a run starts from, where model.from names one.
#pragma once

#include <string>

#include "multihead/tasks/task_type.h"
#include "multihead/train/config/config.h"

namespace mh::detail {

struct StartFolder {
  StartModel model{};
  std::string tokenizer{};  // path of the tokenizer.json it was trained with
};

// Reads config.model.from: a model's folder, or its file with tokenizer.json beside it. Throws: io where it cannot be
// read; invalid_argument, naming the keys, where [model] describes another model (dropout may differ, and max_length
// where positions are not learned), where it lies in train.output, where it has no tokenizer and tokenizer.path names
// none, or where tokenizer.path names another one.
StartFolder read_start_model(const TrainConfig& config);

}  // namespace mh::detail
