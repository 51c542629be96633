// From a node back to the root.
#include "multihead/generate/token_tree.h"

#include <algorithm>

namespace mh::detail {

void TokenTree::ids_to(int32_t node, std::vector<int32_t>& ids) const {
  ids.clear();
  for (; node != kRoot; node = nodes_[static_cast<size_t>(node)].parent)
    ids.push_back(nodes_[static_cast<size_t>(node)].token);
  std::reverse(ids.begin(), ids.end());
}

Hypothesis TokenTree::hypothesis(int32_t node, const std::vector<int32_t>& ends) const {
  Hypothesis out;
  ids_to(node, out.ids);
  for (; node != kRoot; node = nodes_[static_cast<size_t>(node)].parent)
    out.token_scores.push_back(nodes_[static_cast<size_t>(node)].score);
  std::reverse(out.token_scores.begin(), out.token_scores.end());
  out.ended = !out.ids.empty() && std::find(ends.begin(), ends.end(), out.ids.back()) != ends.end();
  if (out.ended) out.ids.pop_back();
  return out;
}

}  // namespace mh::detail
