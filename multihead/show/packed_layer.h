// The weights of one layer as the page stores them: bytes, and numbers about each head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/show/head_statistics.h"
#include "multihead/show/page.h"

namespace mh::detail {

inline constexpr int64_t kPicture = 64, kTopKeys = 16;

struct PackedHead {
  bool whole = true;  // every weight is stored; else a picture and the largest of each row
  HeadStatistics statistics{};
};

// Of each head, one behind the other: whole, queries × keys bytes round(255 √w). Else min(64, queries) × min(64, keys)
// bytes of the same, each the largest of its part of the matrix; then queries × 16 keys in 4 bytes each, little end
// first, the largest weight first; then their weights, a byte each. Missing keys have weight 0.
struct PackedLayer {
  std::vector<PackedHead> heads{};
  std::vector<unsigned char> bytes{};
};

// `whole` of each head. Reads the weights a few rows at a time.
PackedLayer pack_layer(const PageLayer& layer, int64_t queries, int64_t keys, const std::vector<bool>& whole);

// Raw deflate, then base64. Throws: internal.
std::string deflated_base64(const std::vector<unsigned char>& bytes);

}  // namespace mh::detail
