// ByteLevel as a splitter: a space before a text, the cut into words, bytes spelled as characters.
#pragma once

#include "multihead/text/pipeline/document.h"
#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {

struct ByteLevelSplit {
  bool prefix_space = true;
  bool cut_words = true;
  void operator()(Document& document) const;  // does not spell
};

// Throws: as read_normalisers.
ByteLevelSplit read_byte_level(const JsonElement& element, const std::string& where);

// Each byte as one of the 256 characters.
void spell_document(Document& document);

}  // namespace mh::detail
