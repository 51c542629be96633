// The pre-tokenisers of tokenizer.json, each a step that cuts pieces of text into smaller ones.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "multihead/text/pipeline/json_fields.h"
#include "multihead/text/pipeline/piece.h"

namespace mh::detail {

using SplitStep = std::function<void(Pieces&)>;

// Appends the steps of `element`, which may be a Sequence. Throws: as read_normalisers.
void read_splitters(const JsonElement& element, const std::string& where, std::vector<SplitStep>& out);

}  // namespace mh::detail
