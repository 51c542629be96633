// The rules of writing, as changes of the logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/generate/options.h"

namespace mh::detail {

// Whether any rule looks at the logits.
bool changes_logits(const WritingRules& rules);

// What is known where a token is chosen.
struct Place {
  std::span<const int32_t> text{};    // what stands before it: the beginning or the prompt, then what is written
  int64_t written = 0;                // of these, the last so many are written
  std::span<const int32_t> source{};  // the source, or the prompt
  int64_t limit = 0;                  // the most tokens that may be written
  std::span<const int32_t> ends{};
};

// Applies the rules to one row of logits (vocabulary); what is forbidden becomes -inf. In Hugging Face's order:
// repetition, repeated n-grams, those of the source, bad words, shortest lengths, forced tokens, suppressed ones.
void apply_rules(const WritingRules& rules, const Place& at, std::span<float> logits);

// The most tokens of a translation, </s> counted, of a source of `source` tokens without </s>.
int64_t length_limit(const WritingRules& rules, int64_t source, int64_t model_limit);

}  // namespace mh::detail
