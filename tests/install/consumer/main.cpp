// A user's program: attention, its gradient and a caught refusal, over installed headers alone.
#include <cmath>
#include <cstdio>

#include "multihead/multihead.h"

int main() {
  const mh::Tensor q = mh::randn({2, 4, 16, 64}, 1), k = mh::randn({2, 2, 24, 64}, 2), v = mh::randn({2, 2, 24, 32}, 3);
  const mh::AttentionResult result = mh::attention(q, k, v, {.mask = mh::causal()});
  if (!(result.o.shape() == mh::Shape{2, 4, 16, 32})) return 1;

  const mh::AttentionGradients gradients =
      mh::attention_backward({q, k, v, result}, mh::randn({2, 4, 16, 32}, 4), {}, {.mask = mh::causal()});
  if (!std::isfinite(gradients.dq.item({1, 3, 15, 63}))) return 2;

  // Thrown in the library, caught outside it: the type must be one and the same.
  try {
    mh::attention(q, mh::randn({2, 3, 24, 64}, 5), mh::randn({2, 3, 24, 32}, 6));
    return 3;
  } catch (const mh::Error& error) {
    if (error.kind() != mh::ErrorKind::invalid_argument) return 4;
    std::printf("refused: %s\n", error.what());
  }
  std::printf("attention of an installed multihead: %s\n", mh::to_string(result.o.shape()).c_str());
  return 0;
}
