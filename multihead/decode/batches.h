// Which sentences are written together.
#pragma once

#include <cstdint>
#include <vector>

namespace mh::detail {

// Numbers of sentences, longest first, cut where tokens · width would pass the budget; every sentence is in one batch.
// `lengths` are the sources' tokens. At least `at_least` batches where there are as many sentences.
std::vector<std::vector<int64_t>> cut_batches(const std::vector<int64_t>& lengths, int64_t width, int64_t budget,
                                              int64_t at_least);

}  // namespace mh::detail
