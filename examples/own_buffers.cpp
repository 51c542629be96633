// Attention on your own buffers: nothing is copied in, nothing is copied out.
#include <cmath>
#include <cstdio>
#include <vector>

#include "multihead/multihead.h"

int main() {
  // A projection often leaves q, k and v side by side: (batch, time, 3, heads, width).
  const int64_t batch = 2, time = 48, heads = 8, width = 64;
  std::vector<float> qkv(batch * time * 3 * heads * width), out(batch * time * heads * width);
  for (size_t n = 0; n < qkv.size(); ++n) qkv[n] = std::sin(0.37f * static_cast<float>(n % 1013));

  // Three views of that memory in the order attention reads, (batch, heads, time, width), by strides alone.
  const int64_t row = 3 * heads * width;
  const auto view = [&](int64_t which) {
    return mh::wrap(qkv.data() + which * heads * width, {batch, heads, time, width}, {time * row, width, row, 1},
                    mh::DType::f32);
  };
  // The result goes straight to where an output projection wants it: (batch, time, heads · width).
  const mh::Tensor o = mh::wrap(out.data(), {batch, heads, time, width},
                                {time * heads * width, width, heads * width, 1}, mh::DType::f32);

  mh::attention_into({.o = o}, view(0), view(1), view(2), {.mask = mh::causal()});

  // The first query sees the first key alone, so its output is that key's value.
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t d = 0; d < width; ++d) {
      if (std::abs(out[h * width + d] - qkv[(2 * heads + h) * width + d]) > 1e-6f) return 1;
    }
  }
  std::printf("%s\n", mh::explain(view(0), view(1), view(2), {.mask = mh::causal()}).text().c_str());
  std::printf("o[0, last, 0, :4] = %.4f %.4f %.4f %.4f\n", out[(time - 1) * heads * width],
              out[(time - 1) * heads * width + 1], out[(time - 1) * heads * width + 2],
              out[(time - 1) * heads * width + 3]);
  return 0;
}
