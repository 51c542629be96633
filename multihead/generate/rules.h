// The rules of writing, as changes of the logits.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/generate/options.h"

namespace mh::detail {

// Whether any rule looks at the logits.
bool changes_logits(const WritingRules& rules);

// Applies the rules to one row of logits (vocabulary), where `written` stands before the token; what is forbidden
// becomes -inf.
void apply_rules(const WritingRules& rules, const std::vector<int32_t>& written, int32_t end, float* logits);

// The most tokens of a translation, </s> counted, of a source of `source` tokens without </s>.
int64_t length_limit(const WritingRules& rules, int64_t source, int64_t model_limit);

}  // namespace mh::detail
