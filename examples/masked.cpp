// Masks are typed values joined with &: here causal, sentences of different lengths, and words that must not be seen.
#include <cstdio>

#include "multihead/multihead.h"

int main() {
  const int64_t batch = 2, heads = 4, time = 8, width = 32;
  const mh::Tensor q = mh::randn({batch, heads, time, width}, 1), k = mh::randn({batch, heads, time, width}, 2),
                   v = mh::randn({batch, heads, time, width}, 3);

  const mh::Tensor lengths = mh::tensor<int32_t>({8, 5}, {batch});
  const mh::Tensor hidden = mh::tensor<bool>({false, false, true, false, false, false, false, false}, {time});
  const mh::AttentionOptions options{.mask = mh::causal(0) & mh::lengths(lengths) & mh::drop(hidden)};

  const mh::AttentionResult result = mh::attention(q, k, v, options);
  const mh::Tensor weights = mh::attention_weights(q, k, result.lse, options, {0});
  for (int64_t b = 0; b < batch; ++b) {
    std::printf("sentence %d\n", static_cast<int>(b));
    for (int64_t i = 0; i < time; ++i) {
      for (int64_t j = 0; j < time; ++j) {
        const double weight = weights.item({b, 0, i, j});
        const bool kept = j <= i && j < lengths.item({b}) && j != 2;
        if ((weight > 0) != kept) return 1;
        std::printf(kept ? " %.2f" : "    .", weight);
      }
      std::printf("\n");
    }
  }

  // A mask that cannot be meant is refused with a sentence, before anything is computed.
  try {
    mh::attention(q, k, v, {.mask = mh::lengths(mh::tensor<int32_t>({8, 9}, {batch}))});
    return 1;
  } catch (const mh::Error& error) {
    std::printf("refused: %s\n", error.what());
  }
  return 0;
}
