// Boundaries and positions of a ragged batch.
#include "multihead/nn/sequences.h"

#include <algorithm>
#include <limits>

namespace mh {

namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

}  // namespace

Sequences Sequences::of_lengths(const std::vector<int64_t>& lengths) {
  Sequences out;
  out.starts = empty({static_cast<int64_t>(lengths.size()) + 1}, DType::i32);
  int32_t* starts = out.starts.data<int32_t>();
  starts[0] = 0;
  for (size_t b = 0; b < lengths.size(); ++b) {
    check(lengths[b] >= 0, "sequences: length {} of sequence {} is negative; expected 0 or more", lengths[b], b);
    check(lengths[b] <= kMost - out.rows, "sequences: {} rows and {} more of sequence {}; expected fewer than 2^31",
          out.rows, lengths[b], b);
    out.rows += lengths[b];
    out.longest = std::max(out.longest, lengths[b]);
    starts[b + 1] = static_cast<int32_t>(out.rows);
  }
  out.positions = empty({out.rows}, DType::i32);
  int32_t* position = out.positions.data<int32_t>();
  for (const int64_t length : lengths) {
    for (int64_t i = 0; i < length; ++i) *position++ = static_cast<int32_t>(i);
  }
  return out;
}

Sequences Sequences::uniform(int64_t batch, int64_t length) {
  check(batch >= 0 && batch < kMost, "sequences: {} sequences; expected 0 or more, and fewer than 2^31", batch);
  return of_lengths(std::vector<int64_t>(static_cast<size_t>(batch), length));
}

}  // namespace mh
