// How a file spells bytes: each of the 256 as one printable character, as GPT-2 does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mh::detail {

// The characters, by byte. A byte that Latin-1 prints is itself; the others, in order, are U+0100 and up.
const std::array<std::string, 256>& byte_characters();

// Bytes in the order of their characters' code points: the order in which a fresh vocabulary lists them.
const std::array<uint8_t, 256>& bytes_by_character();

std::string spell_bytes(std::string_view bytes);

// Nothing where a character stands for no byte.
std::optional<std::string> read_bytes(std::string_view spelled);

}  // namespace mh::detail
