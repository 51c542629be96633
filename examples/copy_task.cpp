// Training an encoder-decoder to copy what it reads.
#include <cstdio>
#include <memory>

#include "multihead/multihead.h"

int main() {
  const mh::TransformerConfig config{.vocabulary = 20,
                                     .width = 64,
                                     .heads = 4,
                                     .feed_forward = 128,
                                     .encoder_layers = 1,
                                     .decoder_layers = 1,
                                     .dropout = 0,
                                     .max_length = 32};
  const auto store = std::make_shared<mh::ParamStore>();
  const mh::Transformer model(config, store);
  mh::Stepper stepper(store, {.optimiser = {.clip = 1}, .schedule = {.rate = 3e-3, .warmup = 50, .steps = 300}});

  const auto pairs_of = [](uint64_t seed) {  // 32 sentences of 3 to 10 tokens from 4 to 19, each to itself
    std::vector<mh::SentencePair> pairs(32);
    const mh::Tensor noise = mh::randn({32, 11}, seed);
    for (int64_t n = 0; n < 32; ++n) {
      const int64_t length = 3 + static_cast<int64_t>(std::abs(noise.item({n, 10})) * 1e4) % 8;
      for (int64_t i = 0; i < length; ++i)
        pairs[n].first.push_back(4 + static_cast<int32_t>(std::abs(noise.item({n, i})) * 1e4) % 16);
      pairs[n].second = pairs[n].first;
    }
    return pairs;
  };
  for (uint64_t step = 0; step < 300; ++step) {
    const std::vector<mh::SentencePair> pairs = pairs_of(step);
    std::vector<const mh::SentencePair*> all;
    for (const mh::SentencePair& pair : pairs) all.push_back(&pair);
    const mh::PairBatch batch = mh::pair_batch(all, config);
    const mh::StepResult result =
        stepper.step({{batch.target_tokens(), [&](mh::Pass& pass) { return model.loss(batch, pass, 0.1F); }}});
    if (step % 100 == 99) std::printf("step %d  loss a token %.4f\n", static_cast<int>(step) + 1, result.nll);
  }

  int right = 0;
  for (const auto& [source, target] : pairs_of(1000000)) {
    const auto written = mh::search(model, {source}, {.beam = 1});
    right += written[0][0].ids == target;
  }
  std::printf("%d of 32 new sentences copied\n", right);
  return right >= 28 ? 0 : 1;
}
