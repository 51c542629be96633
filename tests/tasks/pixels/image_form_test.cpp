// How pictures are varied, against the formula.
#include "multihead/tasks/pixels/image_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/tasks/pixels/pictures.h"

namespace mh {
namespace {

const ImagePreparation kPrepared{.height = 8, .width = 8, .mean = {0.1F, 0.2F, 0.3F}, .deviation = {0.5F, 1, 2}};

float at(const Tensor& pixels, int64_t c, int64_t i, int64_t j) { return pixels.data<float>()[(c * 8 + i) * 8 + j]; }

TEST(ImageForm, PlainPixelsAreThoseOfThePreparation) {
  const Tensor image = half_bright(true, 4);
  const Tensor plain = ImageForm(kPrepared, {.shift = 3, .flip = true, .colour = 0.5}).pixels(image, nullptr);
  for (int64_t n = 0; n < 64; ++n)
    EXPECT_NEAR(at(plain, 2, n / 8, n % 8), (image.data<uint8_t>()[n * 3 + 2] / 255.0 - 0.3) / 2, 1e-6);
}

TEST(ImageForm, VariedPixelsAreThoseOfTheFormula) {
  const Tensor image = half_bright(true, 4);
  const uint8_t* v = image.data<uint8_t>();
  const double mean = std::accumulate(v, v + image.count(), 0.0) / static_cast<double>(image.count());
  const ImageForm form(kPrepared, {.shift = 3, .flip = true, .colour = 0.3});
  bool flips[2] = {false, false};
  for (uint64_t n = 0; n < 20; ++n) {
    Random random(9, n), same(9, n);
    const Tensor pixels = form.pixels(image, &random);
    const int64_t y = same.below(7) - 3, x = same.below(7) - 3;
    const bool flip = same.below(2) == 1;
    const double k = same.uniform(-0.3, 0.3);
    flips[flip] = true;
    for (int64_t c = 0; c < 3; ++c) {
      const double b = same.uniform(-0.3, 0.3), centre = kPrepared.mean[static_cast<size_t>(c)],
                   deviation = kPrepared.deviation[static_cast<size_t>(c)];
      for (int64_t i = 0; i < 8; ++i)
        for (int64_t j = 0; j < 8; ++j) {
          const int64_t from_y = std::clamp<int64_t>(i + y, 0, 7), seen = std::clamp<int64_t>(j + x, 0, 7);
          const double value = v[(from_y * 8 + (flip ? 7 - seen : seen)) * 3 + c];
          const double expected = std::clamp((1 + k) * (value - mean) + mean + 255 * b, 0.0, 255.0);
          ASSERT_NEAR(at(pixels, c, i, j), (expected / 255 - centre) / deviation, 1e-5);
        }
    }
  }
  EXPECT_TRUE(flips[0] && flips[1]);
}

TEST(ImageForm, WhatIsNotAskedForIsNotVaried) {
  const Tensor image = half_bright(false, 1);
  const ImageForm form(kPrepared, {});
  Random random(1);
  const Tensor varied = form.pixels(image, &random), plain = form.pixels(image, nullptr);
  for (int64_t n = 0; n < plain.count(); ++n) EXPECT_NEAR(varied.data<float>()[n], plain.data<float>()[n], 1e-6);
}

}  // namespace
}  // namespace mh
