// Pictures brought to another size, to the bit as Pillow does it.
#pragma once

#include <cstdint>

#include "multihead/tensor/tensor.h"

namespace mh {

// Pillow's numbers of its filters.
enum class Resample { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3 };

// u8 (height, width, C) of an image (h, w, C). With s = w / width, t = max(s, 1) and the filter's support a (1 of
// bilinear, 2 of bicubic, 3 of lanczos), pixel i of a row is Σ_j k(j) x_j over round(c - a t) <= j < round(c + a t)
// inside the row, c = (i + 1/2) s, k(j) = f((j + 1/2 - c) / t) over their sum. So t spreads the filter over all pixels
// that fall into one: shrinking does not alias.
//   f bilinear: 1 - |x|. bicubic, a = -1/2: (a + 2)|x|³ - (a + 3)|x|² + 1 to 1, a|x|³ - 5a|x|² + 8a|x| - 4a to 2.
//   lanczos: sinc(x) sinc(x / 3). nearest: pixel floor(c).
// Weights are rounded to multiples of 2^-22, rows come first, and the result of each pass is rounded to u8. Throws:
// invalid_argument unless the image is u8 of 1 to 4 channels, no side 0, and the sizes are from 1 to kMostImageSide.
Tensor resize(const Tensor& image, int64_t height, int64_t width, Resample filter);

}  // namespace mh
