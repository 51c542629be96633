// A pass over rows and one over columns, with whole-number weights.
#include "multihead/io/images/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/io/images/image_file.h"

namespace mh {

namespace {

constexpr int kWeightBits = 22;

double sinc(double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

double filter_at(Resample filter, double x) {
  x = std::abs(x);
  if (filter == Resample::bilinear) return x < 1 ? 1 - x : 0;
  if (filter == Resample::lanczos) return x < 3 ? sinc(x) * sinc(x / 3) : 0;
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// Which pixels a new one is made of, and how much of each.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights{};
};

std::vector<Taps> taps_of(int64_t from, int64_t to, Resample filter) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), spread = std::max(scale, 1.0);
  const double support = (filter == Resample::bilinear ? 1 : filter == Resample::bicubic ? 2 : 3) * spread;
  std::vector<Taps> out;
  for (int64_t n = 0; n < to; ++n) {
    const double centre = (static_cast<double>(n) + 0.5) * scale;
    Taps taps;
    if (filter == Resample::nearest) {
      taps = {.first = std::min(from - 1, static_cast<int64_t>(centre)), .weights = {1 << kWeightBits}};
    } else {
      taps.first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
      const int64_t end = std::min(from, static_cast<int64_t>(centre + support + 0.5));
      std::vector<double> weights;
      double sum = 0;
      for (int64_t j = taps.first; j < end; ++j) {
        weights.push_back(filter_at(filter, (static_cast<double>(j) - centre + 0.5) / spread));
        sum += weights.back();
      }
      for (const double w : weights)
        taps.weights.push_back(static_cast<int32_t>(std::round((sum == 0 ? w : w / sum) * (1 << kWeightBits))));
    }
    out.push_back(std::move(taps));
  }
  return out;
}

// Every `step`-th of the bytes from `from` on, weighted.
uint8_t weighted(const uint8_t* from, int64_t step, const Taps& taps) {
  int64_t sum = int64_t{1} << (kWeightBits - 1);
  from += taps.first * step;
  for (const int32_t weight : taps.weights) {
    sum += int64_t{weight} * *from;
    from += step;
  }
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kWeightBits, 0, 255));
}

}  // namespace

Tensor resize(const Tensor& image, int64_t height, int64_t width, Resample filter) {
  check(image && image.dtype() == DType::u8 && image.rank() == 3 && image.count() > 0 && image.size(2) <= 4,
        "resize: the picture is {} {}; expected u8 (height, width, channels), none of them 0",
        image ? name(image.dtype()) : "missing", image ? image.shape() : Shape{});
  check(height >= 1 && width >= 1 && height <= kMostImageSide && width <= kMostImageSide &&
            std::max(height, image.size(0)) * width <= kMostImagePixels,
        "resize: {} to {} x {} pixels; expected 1 to {} a side and at most {} in all", image.shape(), width, height,
        kMostImageSide, kMostImagePixels);
  Tensor out = image.contiguous();
  const int64_t channels = image.size(2);
  if (out.size(1) != width) {
    const Tensor rows = empty({out.size(0), width, channels}, DType::u8);
    const std::vector<Taps> taps = taps_of(out.size(1), width, filter);
    uint8_t* to = rows.data<uint8_t>();
    for (int64_t y = 0; y < out.size(0); ++y)
      for (const Taps& each : taps)
        for (int64_t c = 0; c < channels; ++c)
          *to++ = weighted(out.data<uint8_t>() + y * out.size(1) * channels + c, channels, each);
    out = rows;
  }
  if (out.size(0) != height) {
    const Tensor columns = empty({height, width, channels}, DType::u8);
    uint8_t* to = columns.data<uint8_t>();
    for (const Taps& each : taps_of(out.size(0), height, filter))
      for (int64_t x = 0; x < width * channels; ++x) *to++ = weighted(out.data<uint8_t>() + x, width * channels, each);
    out = columns;
  }
  return out;
}

}  // namespace mh
