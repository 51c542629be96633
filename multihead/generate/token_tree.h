// The tokens of one sentence's hypotheses: a tree, because most of them share their beginnings.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/generate/options.h"

namespace mh::detail {

class TokenTree {
 public:
  static constexpr int32_t kRoot = -1;

  // The node of `token` behind the node `parent`.
  int32_t add(int32_t parent, int32_t token, float score) {
    nodes_.push_back({parent, token, score});
    return static_cast<int32_t>(nodes_.size()) - 1;
  }

  // The tokens up to `node`, first to last; in place of what `ids` held.
  void ids_to(int32_t node, std::vector<int32_t>& ids) const;
  // The hypothesis that stops at `node`, without a score; a last token that is one of `ends` is taken off the ids.
  Hypothesis hypothesis(int32_t node, const std::vector<int32_t>& ends) const;

 private:
  struct Node {
    int32_t parent, token;
    float score;
  };
  std::vector<Node> nodes_;
};

}  // namespace mh::detail
