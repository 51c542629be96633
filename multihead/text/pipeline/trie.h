// Strings found by their beginnings: which of them a text starts with at a place.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mh::detail {

class Trie {
 public:
  // Of two values for one text the first counts.
  void add(std::string_view text, int32_t value) {
    uint32_t node = 0;
    for (const char c : text) {
      const auto [at, fresh] = next_.emplace(key(node, c), static_cast<uint32_t>(values_.size()));
      if (fresh) values_.push_back(kNone);
      node = at->second;
    }
    if (values_[node] == kNone) values_[node] = value;
  }

  // Calls each(end, value) for every string that begins at `at`, the shortest first. The empty string is never found.
  template <class Each>
  void each_prefix(std::string_view text, size_t at, Each&& each) const {
    uint32_t node = 0;
    while (at < text.size()) {
      const auto found = next_.find(key(node, text[at]));
      if (found == next_.end()) return;
      node = found->second;
      ++at;
      if (values_[node] != kNone) each(at, values_[node]);
    }
  }

 private:
  static constexpr int32_t kNone = -1;
  static uint64_t key(uint32_t node, char c) { return uint64_t{node} << 8 | static_cast<uint8_t>(c); }

  std::unordered_map<uint64_t, uint32_t> next_;
  std::vector<int32_t> values_{kNone};
};

}  // namespace mh::detail
