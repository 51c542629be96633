// What translation reads before its first step: the tokenizer and the pairs.
#pragma once

#include "multihead/tasks/data/dataset.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

struct Corpus {
  Tokenizer tokenizer{};
  Dataset train{};
  Dataset valid{};        // empty where the setup neither names nor holds out any
  PairText valid_text{};  // likewise
};

// Reads the files that `setup` names, loads its tokenizer or learns one from both sides of the training pairs, and
// encodes. What was skipped goes to on_message. Throws: as PairText, Dataset and settle_tokenizer.
Corpus read_corpus(const TaskSetup& setup);

}  // namespace mh
