// Joins sequences of token ids into one batch.
#include "multihead/models/pretrained/token_batch.h"

namespace mh {

TokenBatch token_batch(const std::vector<std::vector<int32_t>>& sequences) {
  std::vector<int32_t> all;
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) {
    all.insert(all.end(), sequence.begin(), sequence.end());
    lengths.push_back(static_cast<int64_t>(sequence.size()));
  }
  return {tensor<int32_t>(all, {static_cast<int64_t>(all.size())}), Sequences::of_lengths(lengths)};
}

}  // namespace mh
