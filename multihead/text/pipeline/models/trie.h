// Strings found by their beginnings: which of them a text starts with at a place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mh::detail {

// Nodes lie level by level, so that the children of one stand side by side: nine bytes for each.
class Trie {
 public:
  Trie() : Trie(std::vector<std::pair<std::string, int32_t>>{}) {}
  // Of two values for one string the first counts; values are not negative. The empty string is never found.
  explicit Trie(std::vector<std::pair<std::string, int32_t>> strings) {
    std::stable_sort(strings.begin(), strings.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    struct Range {
      size_t begin, end, depth;
    };
    std::vector<Range> level{{0, strings.size(), 0}};
    labels_.push_back(0);
    values_.push_back(kNone);
    for (size_t node = 0; node < level.size(); ++node) {
      first_.push_back(static_cast<uint32_t>(level.size()));
      auto [at, end, depth] = level[node];
      while (at < end && strings[at].first.size() == depth) ++at;
      while (at < end) {
        const char label = strings[at].first[depth];
        size_t to = at;
        while (to < end && strings[to].first[depth] == label) ++to;
        labels_.push_back(label);
        values_.push_back(strings[at].first.size() == depth + 1 ? strings[at].second : kNone);
        level.push_back({at, to, depth + 1});
        at = to;
      }
    }
    first_.push_back(static_cast<uint32_t>(level.size()));
  }

  // Calls each(end, value) for every string that begins at `at`, the shortest first.
  template <class Each>
  void each_prefix(std::string_view text, size_t at, Each&& each) const {
    uint32_t node = 0;
    while (at < text.size()) {
      const uint32_t first = first_[node], count = first_[node + 1] - first;
      if (count == 0) return;
      const auto* found = static_cast<const char*>(std::memchr(&labels_[first], text[at], count));
      if (!found) return;
      node = static_cast<uint32_t>(found - labels_.data());
      ++at;
      if (values_[node] != kNone) each(at, values_[node]);
    }
  }

 private:
  static constexpr int32_t kNone = -1;

  std::vector<uint32_t> first_;  // by node: its first child; one more at the end
  std::vector<char> labels_;     // by node: the byte that leads to it
  std::vector<int32_t> values_;
};

}  // namespace mh::detail
