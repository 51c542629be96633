// What the readers of normalisers, splitters and decoders share: refusals, literal patterns, single characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {

// Throws: unsupported, "where: "type" is not supported; expected ...".
[[noreturn]] void refuse_part(const std::string& where, std::string_view type, std::string_view expected);

// The field `name`, which must be one character.
std::string read_character(const JsonFields& fields, std::string_view name);

// `what` is not empty.
std::string replace_all(std::string_view text, std::string_view what, std::string_view with);

}  // namespace mh::detail
