// Cross-attention: 4 words of one sentence look at 6 words of another, (2, 4, 512) × (2, 6, 512), in 8 heads of 64.
#include <cstdio>

#include "multihead/multihead.h"

int main() {
  const int64_t batch = 2, queries = 4, keys = 6, model = 512, heads = 8;
  const mh::Tensor x = mh::randn({batch, queries, model}, 1), context = mh::randn({batch, keys, model}, 2);

  // (batch, time, model) to (batch, heads, time, width) is a change of strides.
  const auto by_heads = [&](const mh::Tensor& t) {
    return t.reshape({batch, t.size(1), heads, model / heads}).transpose(1, 2);
  };
  const mh::Tensor q = by_heads(x), k = by_heads(context), v = by_heads(context);
  const mh::AttentionResult result = mh::attention(q, k, v);

  // Asked for afterwards: who looked at whom.
  const mh::Tensor weights = mh::attention_weights(q, k, result.lse);
  std::printf("o %s, weights %s\n", to_string(result.o.shape()).c_str(), to_string(weights.shape()).c_str());
  for (int64_t i = 0; i < queries; ++i) {
    double sum = 0;
    std::printf("word %d:", static_cast<int>(i));
    for (int64_t j = 0; j < keys; ++j) {
      sum += weights.item({0, 0, i, j});
      std::printf(" %.3f", weights.item({0, 0, i, j}));
    }
    std::printf("\n");
    if (sum < 0.9999 || sum > 1.0001) return 1;
  }

  // The gradient, as training would ask for it.
  const mh::AttentionGradients gradients = mh::attention_backward({q, k, v, result}, mh::randn(result.o.shape(), 3));
  return gradients.dk.shape() == k.shape() ? 0 : 1;
}
