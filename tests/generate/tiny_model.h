// Small models with random weights, and what a test asks of them without caches or batches.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/models/transformer.h"

namespace mh::test {

// `sharpness` scales the logits: the larger, the fewer tokens share the probability.
inline Transformer tiny_model(int64_t vocabulary, double sharpness = 1, uint64_t seed = 1) {
  const auto store = std::make_shared<ParamStore>(ParamStoreOptions{.seed = seed});
  Transformer model({.vocabulary = vocabulary,
                     .width = 24,
                     .heads = 3,
                     .feed_forward = 20,
                     .encoder_layers = 1,
                     .decoder_layers = 2,
                     .tied = false,
                     .max_length = 40},
                    store);
  for (const auto& param : store->all()) {
    if (param->name != "output.weight") continue;
    for (int64_t n = 0; n < param->value.count(); ++n)
      param->value.data<float>()[n] *= static_cast<float>(sharpness * std::sqrt(24.0));
  }
  return model;
}

// Sources of 0 to `longest` - 1 tokens that are not special.
inline std::vector<std::vector<int32_t>> random_sources(int64_t count, int64_t longest, int64_t vocabulary) {
  Random random(7);
  std::vector<std::vector<int32_t>> sources(static_cast<size_t>(count));
  for (auto& source : sources) {
    source.resize(static_cast<size_t>(random.below(longest)));
    for (int32_t& id : source) id = static_cast<int32_t>(3 + random.below(vocabulary - 3));
  }
  return sources;
}

// log p of every token behind `written`, by one pass over the whole.
inline std::vector<double> log_p(const Transformer& model, const std::vector<int32_t>& source,
                                 const std::vector<int32_t>& written) {
  std::vector<int32_t> from = source, input = written;
  from.push_back(model.config().end);
  input.insert(input.begin(), model.config().begin);
  Pass pass = Pass::inference();
  const Memory memory = model.encode(token_batch({from}), pass);
  const Tensor logits = model.logits(model.decode(token_batch({input}), memory, pass));
  std::vector<double> out;
  double sum = 0;
  for (int64_t v = 0; v < model.config().vocabulary; ++v) {
    out.push_back(logits.item({static_cast<int64_t>(written.size()), v}));
    sum += std::exp(out.back());
  }
  for (double& x : out) x -= std::log(sum);
  return out;
}

}  // namespace mh::test
