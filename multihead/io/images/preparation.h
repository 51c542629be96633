// From a picture of any size to the numbers that a model reads, as preprocessor_config.json says it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/io/images/resize.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// In this order: resize, centre crop, x · rescale, (x - mean) / deviation.
struct ImagePreparation {
  // To height x width; or, where only one is given, the shorter edge to it and the other in proportion, rounded down.
  // Both 0: no resize.
  int64_t height = 0, width = 0, shortest_edge = 0;
  Resample resample = Resample::bilinear;
  int64_t crop_height = 0, crop_width = 0;  // the middle; black where the picture is smaller; 0: no crop
  double rescale = 1.0 / 255;
  std::vector<float> mean{0.5F, 0.5F, 0.5F}, deviation{0.5F, 0.5F, 0.5F};  // by channel: 3, or 1 of a grey picture

  int64_t channels() const { return static_cast<int64_t>(mean.size()); }
};

// Reads what transformers' image processors of ViT, DeiT and CLIP write: size as a number, {height, width} or
// {shortest_edge}; crop_size; do_resize, do_center_crop, do_rescale, do_normalize. Throws: io, naming file and key,
// where a value is none that is known; unsupported for another form of size or filter.
ImagePreparation read_preparation(const std::string& path);
// As text of such a file, which read_preparation reads and transformers' ViTImageProcessor obeys.
std::string preparation_json(const ImagePreparation& preparation);

// u8 (h, w, channels): resized and cropped. A picture of three channels becomes grey where the preparation has one:
// (19595 r + 38470 g + 7471 b + 32768) / 65536, as Pillow's convert("L").
Tensor fitted(const Tensor& image, const ImagePreparation& preparation);
// f32 (channels, h, w) of a picture that is fitted.
Tensor normalised(const Tensor& fitted, const ImagePreparation& preparation);

}  // namespace mh
