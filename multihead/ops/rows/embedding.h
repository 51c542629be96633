// Rows of a table by number: embeddings with their positions.
#pragma once

#include <optional>

#include "multihead/tensor/tensor.h"

namespace mh {

struct EmbeddingOptions {
  float scale = 1;
  Tensor positions{};             // (T, C) f32: a row of it is added, after the scale
  Tensor position_ids{};          // i32, repeating to the shape of ids; where not given 0, 1, 2 … along its last axis
  std::optional<DType> result{};  // the type of the table where not given; f32 and bf16 mix
};

// ids and position_ids lie on the table's device or on the CPU.
// y[…] = scale · table[ids[…]] + positions[position_ids[…]], table (V, C), ids i32 of any shape, y (…, C).
// Gradient: of table and positions, dense; tokens are added in ascending order, so that the bits depend on sizes alone.
// Throws: invalid_argument where a number is outside its table, before anything is read, or the shapes do not fit;
// unsupported for other types.
Tensor embedding(const Tensor& table, const Tensor& ids, const EmbeddingOptions& options = {});

}  // namespace mh
