// Cosine similarity with a learned temperature per head: s = tau · q·k / (|q||k|), and the gradient of tau.
#include <cmath>
#include <cstdio>

#include "multihead/multihead.h"

int main() {
  const int64_t heads = 4, time = 32, width = 48;
  const mh::Tensor q = mh::randn({1, heads, time, width}, 1), k = mh::randn({1, heads, time, width}, 2),
                   v = mh::randn({1, heads, time, width}, 3);
  const mh::Tensor d_o = mh::randn({1, heads, time, width}, 4);

  const auto loss = [&](const mh::Tensor& taus) {
    const mh::Tensor o = mh::attention(q, k, v, {.similarity = mh::CosineSimilarity{.taus = taus}}).o;
    double sum = 0;
    for (int64_t n = 0; n < o.count(); ++n) sum += static_cast<double>(o.data<float>()[n]) * d_o.data<float>()[n];
    return sum;
  };

  const mh::Tensor taus = mh::tensor<float>({1, 5, 10, 20}, {heads});
  const mh::AttentionOptions options{.similarity = mh::CosineSimilarity{.taus = taus}};
  const mh::AttentionGradients gradients =
      mh::attention_backward({q, k, v, mh::attention(q, k, v, options)}, d_o, {}, options);

  // The gradient of each tau, and what moving that tau a little does.
  for (int64_t h = 0; h < heads; ++h) {
    const float step = 0.01f * taus.data<float>()[h];
    const mh::Tensor up = taus.clone(), down = taus.clone();
    up.data<float>()[h] += step;
    down.data<float>()[h] -= step;
    const double moved = (loss(up) - loss(down)) / (2.0 * static_cast<double>(step)), said = gradients.dtau.item({h});
    std::printf("tau %4.0f   gradient %9.5f   by moving it %9.5f\n", taus.item({h}), said, moved);
    if (std::abs(moved - said) > 1e-2 * std::abs(said) + 1e-2) return 1;
  }

  // Only directions count: longer queries change nothing.
  const mh::Tensor longer = q.clone();
  for (int64_t n = 0; n < longer.count(); ++n) longer.data<float>()[n] *= 8;
  const mh::Tensor a = mh::attention(q, k, v, options).o, b = mh::attention(longer, k, v, options).o;
  for (int64_t n = 0; n < a.count(); ++n) {
    if (std::abs(a.data<float>()[n] - b.data<float>()[n]) > 1e-5f) return 1;
  }
  return 0;
}
