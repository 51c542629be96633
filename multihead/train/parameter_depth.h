// Where in a model's depth a parameter stands, told by its name: for layers that learn slower, or not at all.
#pragma once

#include <cstdint>
#include <string_view>

#include "multihead/nn/params.h"

namespace mh::detail {

inline constexpr int64_t kAnyLayers = 1 << 30;  // more than a model has

// Layers with weights of their own, the encoder's below the decoder's.
struct ModelDepth {
  int64_t encoder = 0, decoder = 0;
  int64_t layers() const { return encoder + decoder; }
};

// 0: embeddings, and the tables that all layers of a stack read; 1 … layers: a layer, from the bottom; encoder + 1:
// also what stands between two stacks; layers + 1: what comes after the last layer, such as its norm and the head.
int64_t parameter_level(std::string_view name, const ModelDepth& depth);

// Whether it stands below all but the first `frozen` layers. Of depth only `encoder` is read, of models that have a
// decoder above it.
bool is_frozen(std::string_view name, const ModelDepth& depth, int64_t frozen);

// Counted by the names of its parameters.
ModelDepth depth_of(const ParamStore& store);

// decay^(layers + 1 - level): by how much the rate of a parameter differs from the whole one.
double rate_at_level(int64_t level, const ModelDepth& depth, double decay);

}  // namespace mh::detail
