// Positions added to the embeddings.
#pragma once

#include <cstdint>

#include "multihead/tensor/tensor.h"

namespace mh {

// The paper's table (length, width): column 2i holds sin(t / 10000^(2i / width)), column 2i + 1 its cosine.
Tensor sinusoidal_positions(int64_t length, int64_t width);

}  // namespace mh
