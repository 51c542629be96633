// A ragged batch: the rows of all sequences one behind the other, without padding.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

struct Sequences {
  Tensor starts{};     // i32 (B + 1): sequence b has rows starts[b] … starts[b + 1] - 1
  Tensor positions{};  // i32 (rows): the place of each row in its own sequence
  int64_t rows = 0, longest = 0;

  int64_t count() const { return starts.size(0) - 1; }
  // Throws: invalid_argument for a negative length, and for rows or sequences that 31 bits do not count.
  static Sequences of_lengths(const std::vector<int64_t>& lengths);
  // `batch` sequences of `length` rows: a padded batch seen as rows.
  static Sequences uniform(int64_t batch, int64_t length);
};

}  // namespace mh
