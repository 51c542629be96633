// How well a language model predicts a text, from the sum of its losses in nats: -Σ log p(token).
//
//   perplexity    = exp(nats / count),   of tokens or, to compare tokenizers, of words
//   bits per byte = nats / (bytes · log 2)
#pragma once

#include <cstdint>

namespace mh {

// Infinite where it is past the range of double; NaN where nats is. Throws: invalid_argument where count < 1.
double perplexity(double nats, int64_t count);

// Throws: invalid_argument where bytes < 1.
double bits_per_byte(double nats, int64_t bytes);

}  // namespace mh
