// The merging of a word's symbols into tokens by a ranked list of pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/text/pair_map.h"

namespace mh::detail {

struct Merge {
  Pair pair;
  int32_t result = 0;  // the token of both together
};

// A token of a word, and how many of the word's bytes it stands for.
struct Symbol {
  int32_t token = 0;
  uint32_t bytes = 0;
};

// Of all neighbours that have a merge, the one that stands first in the list is merged, the leftmost of equals; again,
// until none is left.
class Merges {
 public:
  Merges() = default;
  // Where a pair is listed twice, its last place counts.
  explicit Merges(const std::vector<Merge>& ranked);

  void merge(std::vector<Symbol>& word) const { word.size() <= kShort ? merge_short(word) : merge_long(word); }

  // Quadratic in the word, which has at most kShort symbols.
  void merge_short(std::vector<Symbol>& word) const;
  // n log n: a word of a million symbols takes a fraction of a second.
  void merge_long(std::vector<Symbol>& word) const;

  static constexpr size_t kShort = 48;

 private:
  // The place of the pair in the list, or kNone.
  uint32_t rank(int32_t left, int32_t right) const {
    const uint32_t* found = ranks_.find({left, right});
    return found ? *found : kNone;
  }

  static constexpr uint32_t kNone = ~uint32_t{0};
  std::vector<int32_t> results_;  // by rank
  PairMap<uint32_t> ranks_;
};

}  // namespace mh::detail
