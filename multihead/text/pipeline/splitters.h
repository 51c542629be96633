// The pre-tokenisers of tokenizer.json, each a step that cuts pieces of text into smaller ones.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "multihead/text/pipeline/document.h"
#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {

using SplitStep = std::function<void(Document&)>;

struct Splitters {
  std::vector<SplitStep> steps;
  // The last step is ByteLevel, and the bytes of its words are still to be spelled, or to be taken as they are.
  bool bytes_at_end = false;
};

// Appends the steps of `element`, which may be a Sequence. Throws: as read_normalisers.
void read_splitters(const JsonElement& element, const std::string& where, Splitters& out);

}  // namespace mh::detail
