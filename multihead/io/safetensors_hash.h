// The hash that a safetensors file of ours carries of its own bytes, in its metadata.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mh::detail {

inline constexpr const char* kHashKey = "multihead.xxh3";

// What stands under kHashKey until the rest of the header is known.
std::string hash_placeholder();

// Puts the hash of all other bytes into the place that the placeholder holds in `head`; `data` follows it in the file.
void put_hash(std::string& head, std::span<const std::span<const std::byte>> data);

// Whether `digits` are the hash of all bytes of the file but those digits themselves. They are looked for in the first
// `head_bytes`, spelled as put_hash spells them.
bool has_hash(std::span<const std::byte> file, size_t head_bytes, std::string_view digits);

}  // namespace mh::detail
