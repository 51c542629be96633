// The normalisers of tokenizer.json, each a step that changes one stretch of text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "multihead/text/pipeline/aligned.h"
#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {

using NormaliseStep = std::function<void(Aligned&)>;

struct BertOptions {
  bool clean_text = true;
  bool chinese = true;
  bool strip_accents = true;
  bool lowercase = true;
};

NormaliseStep bert_normaliser(const BertOptions& options);

// Appends the steps of `element`, which may be a Sequence. Throws: unsupported for a normaliser that is not among them,
// invalid_argument for one with other fields than it has; both begin with `where`.
void read_normalisers(const JsonElement& element, const std::string& where, std::vector<NormaliseStep>& out);

}  // namespace mh::detail
