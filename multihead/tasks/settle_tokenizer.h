// The tokenizer of a task: loaded where the setup names one, else learned from the training data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "multihead/tasks/task_setup.h"

namespace mh::detail {

// The tokenizer of setup.tokenizer_file, else of tokenizer.path, else one learned from `lines()`. Throws: as
// Tokenizer::load, train_bpe, learn_words and train_words; invalid_argument where `has_ends` and it lacks the special
// tokens <pad>, <s>, </s> under the ids the model gives them, or has not as many tokens as model.vocabulary says.
Tokenizer settle_tokenizer(const TaskSetup& setup, const std::function<std::vector<std::string>()>& lines,
                           bool has_ends = true);

// The setup, with the tokenizer of the folder of Hugging Face's that it starts from, unless it names another.
TaskSetup with_tokenizer_of_start(TaskSetup setup);

}  // namespace mh::detail
