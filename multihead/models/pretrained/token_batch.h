// Batches of token ids without padding.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/nn/sequences.h"

namespace mh {

// Sequences of ids, one behind the other.
struct TokenBatch {
  Tensor ids{};  // i32 (rows)
  Sequences at{};
};
TokenBatch token_batch(const std::vector<std::vector<int32_t>>& sequences);

}  // namespace mh
