// Pictures as a model reads them, and how they are varied while it learns.
#pragma once

#include <string>

#include "multihead/io/images/preparation.h"
#include "multihead/tasks/pixels/pixel_form.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

struct ImageVariation {
  int64_t shift = 0;  // pixels, at most, each way
  bool flip = false;  // left and right change places in half of the pictures
  double colour = 0;  // contrast by 1 ± this, each channel by ± this of its range
};

// x(c, i, j) = clip((1 + k) · (v(c, i + y, ±(j + x)) - m) + m + 255 b_c, 0, 255), then normalised: v the picture, its
// edges going on outside, m the mean of all its numbers; y, x uniform in -shift … shift, k and b_c in ± colour. Drawn
// in this order: y, x, flip, k, b_c.
class ImageForm : public PixelForm {
 public:
  ImageForm(ImagePreparation preparation, ImageVariation variation)
      : preparation_(std::move(preparation)), variation_(variation) {}

  std::string examples() const override { return "pictures"; }
  std::vector<std::string> endings() const override { return {".png", ".jpg", ".jpeg", ".ppm", ".pgm"}; }
  PixelShape shape() const override;
  Tensor read(const std::string& path) const override;
  Tensor pixels(const Tensor& example, Random* random) const override;
  void save(const std::string& folder) const override;
  const ImagePreparation& preparation() const { return preparation_; }

 private:
  ImagePreparation preparation_;
  ImageVariation variation_;
};

ImageVariation image_variation(const DataConfig& data);

}  // namespace mh
