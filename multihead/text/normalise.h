// Unicode normalisation and lower-casing of text that may hold broken bytes.
#pragma once

#include <string>
#include <string_view>

#include "multihead/text/tokenizer.h"

namespace mh::detail {

// Bytes that are no part of well-formed UTF-8 stay where they are and part the text before them from the text behind.
std::string normalise(std::string_view text, Normalisation form);

// Each character by its own mapping, whatever stands around it, in no language in particular.
std::string lowercase(std::string_view text);

}  // namespace mh::detail
