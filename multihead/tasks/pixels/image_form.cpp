// Varying pictures.
#include "multihead/tasks/pixels/image_form.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "multihead/io/durable_file.h"
#include "multihead/io/images/image_file.h"

namespace mh {

namespace {

struct ImageDraw {
  int64_t down = 0, right = 0;
  bool flipped = false;
  double contrast = 0;
  std::array<double, 3> colours{};
};

ImageDraw draw(const ImageVariation& v, Random& random) {
  ImageDraw out;
  if (v.shift > 0) {
    out.down = random.below(2 * v.shift + 1) - v.shift;
    out.right = random.below(2 * v.shift + 1) - v.shift;
  }
  if (v.flip) out.flipped = random.below(2) == 1;
  if (v.colour > 0) {
    out.contrast = random.uniform(-v.colour, v.colour);
    for (double& each : out.colours) each = random.uniform(-v.colour, v.colour);
  }
  return out;
}

}  // namespace

PixelShape ImageForm::shape() const {
  const ImagePreparation& p = preparation_;
  return {.channels = p.channels(),
          .height = p.crop_height > 0 ? p.crop_height : p.height,
          .width = p.crop_width > 0 ? p.crop_width : p.width};
}

Tensor ImageForm::read(const std::string& path) const { return fitted(read_image(path), preparation_); }

Tensor ImageForm::pixels(const Tensor& example, Random* random) const {
  if (random == nullptr) return normalised(example, preparation_);
  const ImageDraw drawn = draw(variation_, *random);
  const int64_t height = example.size(0), width = example.size(1), channels = example.size(2);
  const uint8_t* from = example.data<uint8_t>();
  const double mean = static_cast<double>(std::accumulate(from, from + example.count(), int64_t{0})) /
                      static_cast<double>(example.count());
  const Tensor out = empty({channels, height, width});
  float* to = out.data<float>();
  for (int64_t c = 0; c < channels; ++c) {
    const auto at = static_cast<size_t>(c);
    std::array<float, 256> values{};
    for (size_t n = 0; n < values.size(); ++n) {
      const double value = (1 + drawn.contrast) * (static_cast<double>(n) - mean) + mean + 255 * drawn.colours[at];
      values[n] = (static_cast<float>(std::clamp(value, 0.0, 255.0) * preparation_.rescale) - preparation_.mean[at]) /
                  preparation_.deviation[at];
    }
    for (int64_t i = 0; i < height; ++i) {
      const int64_t y = std::clamp<int64_t>(i + drawn.down, 0, height - 1);
      for (int64_t j = 0; j < width; ++j) {
        const int64_t across = std::clamp<int64_t>(j + drawn.right, 0, width - 1);
        const int64_t x = drawn.flipped ? width - 1 - across : across;
        *to++ = values[from[(y * width + x) * channels + c]];
      }
    }
  }
  return out;
}

void ImageForm::save(const std::string& folder) const {
  write_durably(folder + "/preprocessor_config.json", preparation_json(preparation_));
}

ImageVariation image_variation(const DataConfig& data) {
  return {.shift = data.shift, .flip = data.flip, .colour = data.colour_noise};
}

}  // namespace mh
