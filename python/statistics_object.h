// What multihead.Statistics holds: arrays, as AttentionStatistics has tensors.
#pragma once

#include <nanobind/nanobind.h>

namespace mh::python {

struct StatisticsObject {
  nanobind::object entropy, top_keys, top_weights, received, distance;
};

}  // namespace mh::python
