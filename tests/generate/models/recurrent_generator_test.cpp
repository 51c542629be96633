// Beam search and sampling over a recurrent model: the same texts in any batch, and the scores of the whole pass.
#include "multihead/generate/models/recurrent_generator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/generate/search.h"

namespace mh {
namespace {

RecurrentSeq2Seq model_with(PairAttention attention) {
  RecurrentSeq2Seq model({.cell = Cell::gru,
                          .attention = attention,
                          .vocabulary = 40,
                          .width = 16,
                          .hidden = 18,
                          .encoder_layers = 1,
                          .decoder_layers = 1,
                          .max_length = 20},
                         std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
  model.pack();
  return model;
}

const Prompts kSources{{5, 6, 7}, {}, {9, 10, 11, 12, 13, 14, 15}, {30}};

TEST(RecurrentGenerator, WritesTheSameInAnyBatch) {
  for (const PairAttention attention : {PairAttention::none, PairAttention::additive, PairAttention::multiplicative}) {
    const RecurrentSeq2Seq model = model_with(attention);
    const RecurrentGenerator generator(model);
    const SearchOptions options{.beam = 3, .n_best = 2};
    const auto all = search(generator, kSources, options);
    for (size_t n = 0; n < kSources.size(); ++n) {
      const auto one = search(generator, {kSources[n]}, options);
      ASSERT_EQ(all[n].size(), one[0].size());
      for (size_t rank = 0; rank < one[0].size(); ++rank) {
        EXPECT_EQ(all[n][rank].ids, one[0][rank].ids);
        EXPECT_EQ(all[n][rank].score, one[0][rank].score);
      }
    }
  }
}

TEST(RecurrentGenerator, ScoresAreThoseOfTheWholePass) {
  for (const PairAttention attention : {PairAttention::none, PairAttention::additive, PairAttention::multiplicative}) {
    const RecurrentSeq2Seq model = model_with(attention);
    const auto written = sample(RecurrentGenerator(model), kSources, SamplingOptions{.seed = 3});
    for (size_t n = 0; n < kSources.size(); ++n) {
      const Hypothesis& text = written[n].at(0);
      std::vector<int32_t> source = kSources[n], input{model.config().begin}, label = text.ids;
      source.push_back(model.config().end);
      input.insert(input.end(), text.ids.begin(), text.ids.end());
      if (text.ended) label.push_back(model.config().end);
      input.resize(label.size());  // a text that was cut has no token behind its last
      Pass pass = Pass::inference();
      const Tensor logits =
          model.logits(model.decode(token_batch({input}), model.encode(token_batch({source}), pass), pass));
      ASSERT_EQ(text.token_scores.size(), label.size());
      for (size_t t = 0; t < label.size(); ++t) {
        const auto row = static_cast<int64_t>(t);
        double sum = 0;
        for (int64_t v = 0; v < 40; ++v) sum += std::exp(logits.item({row, v}));
        EXPECT_NEAR(static_cast<double>(text.token_scores[t]), logits.item({row, label[t]}) - std::log(sum), 1e-4);
      }
    }
  }
}

}  // namespace
}  // namespace mh
