// From images to the rows a stack reads: flattened patches through one matrix, with a class token and positions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "multihead/nn/linear.h"

namespace mh {

struct PatchEmbeddingOptions {
  int64_t height = 224, width = 224;  // of the image
  int64_t patch_height = 16, patch_width = 16;
  int64_t channels = 3;
  int64_t output = 768;  // the model's width
  int64_t extra = 1;     // learned rows before the patches: the class token, DeiT's distillation token
  bool bias = true;      // of the patches' matrix
  std::optional<Norm::Options> norm{};
  float dropout = 0;

  int64_t patches() const { return (height / patch_height) * (width / patch_width); }
  int64_t rows() const { return extra + patches(); }
};

// Parameters: patches.weight (output, channels · patch_height · patch_width) and .bias, extra.N (1, output), positions
// (rows(), output), norm.….
class PatchEmbedding {
 public:
  // Throws: invalid_argument where patches do not fill the image.
  PatchEmbedding(const Params& at, const PatchEmbeddingOptions& options);
  // pixels f32 (B, channels, height, width) -> (B · rows(), output), the rows of an image together, patches by lines.
  Tensor operator()(const Tensor& pixels, Pass& pass) const;
  void pack(DType compute);
  const PatchEmbeddingOptions& options() const { return options_; }

 private:
  PatchEmbeddingOptions options_;
  Linear patches_;
  std::vector<const Param*> extra_;
  const Param* positions_;
  std::optional<Norm> norm_;
};

}  // namespace mh
