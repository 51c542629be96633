// Positions added to the embeddings.
#pragma once

#include <cstdint>

#include "multihead/tensor/tensor.h"

namespace mh {

// Which columns hold sines and cosines, and of which angles, n = 0 … width / 2 - 1: neighbours, the paper's: columns 2n
// and 2n + 1 of t / 10000^(2n / width); halves: columns n and n + width / 2 of the same; spread: halves of
// t / 10000^(n / (width / 2 - 1)).
enum class SinusoidLayout { neighbours, halves, spread };

// The table (length, width) of sines and cosines. Halves and spread expect an even width.
Tensor sinusoidal_positions(int64_t length, int64_t width, SinusoidLayout layout = SinusoidLayout::neighbours);

}  // namespace mh
