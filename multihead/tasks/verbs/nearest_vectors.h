// Exact search: the vectors that are most like a query.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

struct NearVector {
  int64_t row = 0;
  float score = 0;
};

// Rows divided by their lengths, so that products are cosines; rows of zeros stay. f32 (rows, width), a copy.
Tensor unit_rows(const Tensor& vectors);

// For each of `queries` f32 (Q, width) the k rows of `vectors` f32 (N, width) with the greatest products, the greatest
// first, of equals the first row; all of them where N < k. Every product is taken, in f32, a few thousand rows at a
// time. Throws: invalid_argument, with the shapes, where the widths differ or k < 1.
std::vector<std::vector<NearVector>> nearest_vectors(const Tensor& vectors, const Tensor& queries, int64_t k);

}  // namespace mh
