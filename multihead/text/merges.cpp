// Merging in two ways with one outcome: a scan for short words, a queue for long ones.
#include "multihead/text/merges.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace mh::detail {

Merges::Merges(const std::vector<Merge>& ranked) : ranks_(ranked.size()) {
  results_.reserve(ranked.size());
  for (const Merge& merge : ranked) {
    const auto place = static_cast<uint32_t>(results_.size());
    ranks_.insert(merge.pair, place) = place;
    results_.push_back(merge.result);
  }
}

void Merges::merge_short(std::vector<Symbol>& word) const {
  size_t count = word.size();
  if (count < 2) return;
  uint32_t ranks[kShort];  // of each symbol with the next
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = rank(word[i].token, word[i + 1].token);
  while (count > 1) {
    const size_t at = static_cast<size_t>(std::min_element(ranks, ranks + count - 1) - ranks);
    if (ranks[at] == kNone) break;
    word[at] = {results_[ranks[at]], word[at].bytes + word[at + 1].bytes};
    --count;
    for (size_t i = at + 1; i < count; ++i) word[i] = word[i + 1];
    for (size_t i = at; i + 1 < count; ++i) ranks[i] = ranks[i + 1];
    if (at > 0) ranks[at - 1] = rank(word[at - 1].token, word[at].token);
    if (at + 1 < count) ranks[at] = rank(word[at].token, word[at + 1].token);
  }
  word.resize(count);
}

void Merges::merge_long(std::vector<Symbol>& word) const {
  struct Node {
    int32_t token = 0;  // -1 once it is part of its left neighbour
    uint32_t bytes = 0;
    size_t before = 0, after = 0;
    uint32_t rank = kNone;  // with the node after it
  };
  struct Candidate {
    uint32_t rank;
    size_t at;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  const size_t end = word.size();
  std::vector<Node> nodes(end);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto weigh = [&](size_t at) {
    Node& node = nodes[at];
    node.rank = node.after == end ? kNone : rank(node.token, nodes[node.after].token);
    if (node.rank != kNone) queue.push({node.rank, at});
  };
  for (size_t i = 0; i < end; ++i) nodes[i] = {word[i].token, word[i].bytes, i - 1, i + 1, kNone};
  for (size_t i = 0; i < end; ++i) weigh(i);

  while (!queue.empty()) {
    const auto [place, at] = queue.top();
    queue.pop();
    Node& node = nodes[at];
    if (node.token < 0 || node.rank != place) continue;  // overtaken by another merge
    Node& taken = nodes[node.after];
    node.token = results_[place];
    node.bytes += taken.bytes;
    node.after = taken.after;
    taken.token = -1;
    if (node.after != end) nodes[node.after].before = at;
    weigh(at);
    if (at > 0) weigh(node.before);
  }
  word.clear();
  for (size_t i = 0; i < end; i = nodes[i].after) word.push_back({nodes[i].token, nodes[i].bytes});
}

}  // namespace mh::detail
