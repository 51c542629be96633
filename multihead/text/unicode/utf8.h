// Whether bytes are text, and text made of them: UTF-8, by the rules of the Unicode standard.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mh {

// Where the first byte stands that is no part of well-formed UTF-8; nothing where all of it is well-formed. Overlong
// forms, surrogates and values past U+10FFFF are not.
std::optional<size_t> utf8_error(std::string_view text);

// The text without the bytes that are not well-formed, as Python's errors="ignore" leaves it: a model that writes half
// a character has written nothing.
std::string whole_utf8(std::string_view text);

}  // namespace mh
