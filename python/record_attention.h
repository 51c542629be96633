// Runs a translation model over a pair of sentences and keeps every attention weight.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh::python {

// f32 (layers, heads, queries, keys); rows sum to 1. Empty where the stack has no layers.
struct RecordedAttention {
  Tensor encoder, decoder, cross;
};

// A model of its own beside the translator's, which keeps its layers to itself: made when attention is first asked for.
class AttentionRecorder {
 public:
  // FOLDER/model.safetensors. Throws: as load_transformer.
  explicit AttentionRecorder(const std::string& folder);
  ~AttentionRecorder();
  // Ids without special tokens: the source is read with </s> behind it, the target with <s> before it. May be called
  // from many threads at once. Throws: invalid_argument where a sentence is longer than the model reads.
  RecordedAttention operator()(std::vector<int32_t> source, std::vector<int32_t> target) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace mh::python
