// One text or two with the special tokens around them: what a model is given.
#pragma once

#include <string_view>
#include <vector>

#include "multihead/text/pipeline/pipeline.h"
#include "multihead/text/tokenizer.h"

namespace mh::detail {

enum class Windows { first, all };

// `texts`: one or two. The first window comes first. Throws: as Tokenizer::encode_windows.
std::vector<Encoded> assemble(const Pipeline& steps, const std::vector<std::string_view>& texts,
                              const EncodeOptions& options, Windows windows);

}  // namespace mh::detail
