// The decoders of tokenizer.json, each a step from tokens towards text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {

// Changes the tokens that are to be joined to a text.
using DecodeStep = std::function<void(std::vector<std::string>&)>;

// Appends the steps of `element`, which may be a Sequence. Throws: as read_normalisers.
void read_decoders(const JsonElement& element, const std::string& where, std::vector<DecodeStep>& out);

}  // namespace mh::detail
