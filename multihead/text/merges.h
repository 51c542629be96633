// The merging of a word's bytes into tokens by a ranked list of pairs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "multihead/text/pair_map.h"

namespace mh::detail {

struct Merge {
  Pair pair;
  int32_t result = 0;  // the token of both together
};

// Of all neighbours that have a merge, the one that stands first in the list is merged, the leftmost of equals; again,
// until none is left.
class Merges {
 public:
  Merges() = default;
  // `bytes`: the token of each byte. Where a pair is listed twice, its last place counts.
  Merges(const std::array<int32_t, 256>& bytes, const std::vector<Merge>& ranked);

  void encode(std::string_view word, std::vector<int32_t>& out) const {
    word.size() <= kShort ? encode_short(word, out) : encode_long(word, out);
  }

  // Quadratic in the word, without memory of its own; `word` has at most kShort bytes.
  void encode_short(std::string_view word, std::vector<int32_t>& out) const;
  // n log n: a word of a million bytes takes a fraction of a second.
  void encode_long(std::string_view word, std::vector<int32_t>& out) const;

  static constexpr size_t kShort = 48;

 private:
  // The place of the pair in the list, or kNone.
  uint32_t rank(int32_t left, int32_t right) const {
    const uint32_t* found = ranks_.find({left, right});
    return found ? *found : kNone;
  }

  static constexpr uint32_t kNone = ~uint32_t{0};
  std::array<int32_t, 256> bytes_{};
  std::vector<int32_t> results_;  // by rank
  PairMap<uint32_t> ranks_;
};

}  // namespace mh::detail
