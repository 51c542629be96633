// Which sentences are written together.
#pragma once

#include <cstdint>
#include <vector>

namespace mh::detail {

// Numbers of sentences, longest first, cut where tokens · width would pass the budget; every sentence is in one batch.
// `lengths` are the sources' tokens. A batch takes at most half of a worker's part of what is left: the last ones are
// small, and workers that take one after the other end together.
std::vector<std::vector<int64_t>> cut_batches(const std::vector<int64_t>& lengths, int64_t width, int64_t budget,
                                              int64_t workers);

}  // namespace mh::detail
