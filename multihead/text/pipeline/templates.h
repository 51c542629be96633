// What is put around one text or two: special tokens and token types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/text/pipeline/models/word_model.h"
#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {

struct TemplatePart {
  enum class Kind { first, second, special } kind = Kind::first;
  int32_t type = 0;
  std::vector<int32_t> ids{};  // of special tokens
};

// White space at the ends of a token is no part of its offsets.
struct TrimOffsets {
  bool prefix_space = false;  // the space of a text's first token may be one that was put there: it stays
};

struct Templates {
  std::vector<TemplatePart> single{{TemplatePart::Kind::first, 0}};
  std::vector<TemplatePart> pair{{TemplatePart::Kind::first, 0}, {TemplatePart::Kind::second, 1}};
  std::vector<TrimOffsets> trims{};  // one after the other
};

// Reads TemplateProcessing, BertProcessing, RobertaProcessing and ByteLevel, or a Sequence with at most one that adds
// tokens, behind the ByteLevels. Throws: as read_normalisers; invalid_argument where an id is not in [0, size).
Templates read_templates(const JsonElement& element, const std::string& where, int32_t size);

// How many special tokens there are.
int64_t count_special(const std::vector<TemplatePart>& parts);

}  // namespace mh::detail
