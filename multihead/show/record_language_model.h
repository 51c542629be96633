// Recordings of the language models that training leaves.
#pragma once

#include <string>

#include "multihead/show/recording.h"
#include "multihead/tasks/language_model.h"

namespace mh {

// One forward pass over <s> and the text. Throws: invalid_argument where it is longer than the model reads.
Recording record(const LanguageModelFolder& folder, const std::string& text);

}  // namespace mh
