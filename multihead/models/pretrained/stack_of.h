// What the models derive from their configs in the same way.
#pragma once

#include <cmath>

#include "multihead/models/transformer.h"

namespace mh::detail {

LayerPositions layer_positions(ModelPositions positions, bool decoder);

inline Init embedding_init(int64_t width) { return Init::normal(1 / std::sqrt(static_cast<double>(width))); }

}  // namespace mh::detail
