// Normal forms and lower case exactly as Hugging Face's tokenizers make them, character by character.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "multihead/text/unicode/changed.h"

namespace mh::detail {

enum class Form { nfc, nfd, nfkc, nfkd };

// Whether the text is in the form already, found quickly: false may be wrong.
bool surely_in_form(std::string_view text, Form form);

// By ICU's tables, but what Hugging Face's older ones (Unicode 9) do not know neither decomposes nor composes nor
// moves. `text` is UTF-8.
std::vector<Changed> to_form(std::string_view text, Form form);

// Appends the canonical decomposition of one character, marks not yet in order.
void append_decomposed(uint32_t c, Form form, std::vector<uint32_t>& out);

// 0 for a character that does not move.
uint8_t combining_class(uint32_t c);

// The one character that is the lower case of `c`; of U+0130 the first of its two.
uint32_t lower_case(uint32_t c);

// Each character by its own mapping, whatever stands around it.
std::vector<Changed> to_lower(std::string_view text);

}  // namespace mh::detail
