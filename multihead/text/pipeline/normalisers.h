// The normalisers of tokenizer.json, each a step that changes one piece of text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "multihead/text/pipeline/json_fields.h"
#include "multihead/text/pipeline/piece.h"

namespace mh::detail {

using NormaliseStep = std::function<void(Piece&)>;

struct BertNormaliser {
  bool clean_text = true;
  bool chinese = true;
  bool strip_accents = true;
  bool lowercase = true;

  void operator()(Piece& piece) const;
};

// Appends the steps of `element`, which may be a Sequence. Throws: unsupported for a normaliser that is not among them,
// invalid_argument for one with other fields than it has; both begin with `where`.
void read_normalisers(const JsonElement& element, const std::string& where, std::vector<NormaliseStep>& out);

}  // namespace mh::detail
