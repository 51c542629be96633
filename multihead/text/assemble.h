// One text or two with the special tokens around them: what a model is given.
#pragma once

#include <vector>

#include "multihead/text/pipeline/templates.h"
#include "multihead/text/tokenizer.h"

namespace mh::detail {

// Fits `parts` to one text or two, cutting the longer text first where `options.max_length` says so.
Encoded assemble(const std::vector<TemplatePart>& parts, std::vector<int32_t> first, std::vector<int32_t> second,
                 const EncodeOptions& options);

}  // namespace mh::detail
