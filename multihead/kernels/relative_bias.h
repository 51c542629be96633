// The contract of biases that depend on the distance alone, as one array over distances; and the way back for
// gradients.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// Distances d = position - j of a call: min … min + count - 1.
struct Distances {
  int64_t min = 0, count = 0;
};

struct T5Buckets {
  int64_t count = 32;  // rows of the table; even where bidirectional
  bool bidirectional = true;
  int64_t max_distance = 128;
};

// The bucket of distance d = position - j. Half of the buckets of one direction hold one distance each, the others grow
// with its logarithm up to max_distance, taken in f32 as the trained tables of T5 were. One direction: keys ahead share
// bucket 0; two: keys ahead (d < 0) have the upper half.
int64_t t5_bucket(const T5Buckets& buckets, int64_t d);

// ALiBi, where there are slopes: relative[h · count + d - min] = -slopes[h] · |d|;
// else T5:                       relative[h · count + d - min] = table[bucket(d)][h].
struct RelativeBiasForwardArgs {
  View slopes{};  // f32 (H), any stride, or null
  View table{};   // f32 (buckets, H), any strides
  T5Buckets buckets{};
  Distances distances{};
  float* relative = nullptr;
};

// ALiBi, where there are dslopes: dslopes[h] = -Σ_d |d| · drelative[h][d];
// else T5:                        dtable[n][h] = Σ over d in bucket n of drelative[h][d]. Overwritten.
struct RelativeBiasBackwardArgs {
  const float* drelative = nullptr;
  View dslopes{}, dtable{};  // as slopes and table
  T5Buckets buckets{};
  Distances distances{};
};

}  // namespace mh::kernels
