// The order of one epoch: which examples make which batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/tasks/data/batches.h"

namespace mh::detail {

class EpochPlan {
 public:
  EpochPlan(std::span<const ExampleLength> lengths, const OrderOptions& options, int64_t epoch);

  int64_t batches() const { return static_cast<int64_t>(batches_.size()); }
  // Numbers of examples.
  std::span<const int64_t> batch(int64_t index) const {
    const Range& range = batches_[static_cast<size_t>(index)];
    return std::span(order_).subspan(range.begin, range.end - range.begin);
  }

 private:
  struct Range {
    size_t begin, end;  // in order_
  };
  std::vector<int64_t> order_;
  std::vector<Range> batches_;
};

}  // namespace mh::detail
