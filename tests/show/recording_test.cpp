// What is recorded of a forward pass is what attention's definition gives in double precision.
#include "multihead/show/recording.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "multihead/check/reference.h"
#include "tests/generate/tiny_translator.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class RecordedTranslator : public testing::Test {
 protected:
  void SetUp() override {
    test::write_translator(folder_.path());
    translator_.emplace(Translator::load(folder_.path()));
    const Translation done = translator_->translate({"the cat sat"}, {.rules = {.max_length = 7}}).front();
    recording_ = record(*translator_, "the cat sat", done.candidates.front().sentences.front());
  }
  TemporaryFolder folder_;
  std::optional<Translator> translator_;
  Recording recording_;
};

// p = exp(s) / Σ exp(s) of q and k as they were recorded, by hand in double; ALiBi and T5 are the reference's affair.
double naive_weight(const RecordedLayer& layer, int64_t h, int64_t i, int64_t j) {
  const auto score = [&](int64_t key) {
    double sum = 0;
    for (int64_t d = 0; d < layer.call.q.size(2); ++d)
      sum += layer.call.q.item({i, h, d}) * layer.call.k.item({key, h, d});
    return sum / std::sqrt(static_cast<double>(layer.call.q.size(2)));
  };
  const int64_t keys = layer.kind == AttentionKind::decoder ? i + 1 : layer.keys();
  double all = 0;
  for (int64_t key = 0; key < keys; ++key) all += std::exp(score(key));
  return j < keys ? std::exp(score(j)) / all : 0;
}

// Scores are about 1, sums of 8 f32 products: 1e-6 each, and exp passes that on.
TEST_F(RecordedTranslator, WeightsAreTheSoftmaxOfTheRecordedHeads) {
  ASSERT_FALSE(recording_.of(AttentionKind::encoder).empty());
  ASSERT_FALSE(recording_.of(AttentionKind::decoder).empty());
  ASSERT_FALSE(recording_.of(AttentionKind::cross).empty());
  for (const RecordedLayer& layer : recording_.layers) {
    const Tensor weights = layer.weights();
    ASSERT_EQ(weights.shape(), (Shape{layer.heads(), layer.queries(), layer.keys()}));
    for (int64_t h = 0; h < layer.heads(); ++h)
      for (int64_t i = 0; i < layer.queries(); ++i)
        for (int64_t j = 0; j < layer.keys(); ++j)
          EXPECT_NEAR(weights.item({h, i, j}), naive_weight(layer, h, i, j), 1e-5) << h << " " << i << " " << j;
  }
}

TEST_F(RecordedTranslator, ChosenHeadsAndRowsAreThoseOfTheWhole) {
  const RecordedLayer& layer = recording_.layers.front();
  const Tensor all = layer.weights(), some = layer.weights({1}, {2, 0});
  ASSERT_EQ(some.shape(), (Shape{1, 2, layer.keys()}));
  for (int64_t j = 0; j < layer.keys(); ++j) {
    EXPECT_EQ(some.item({0, 0, j}), all.item({1, 2, j}));
    EXPECT_EQ(some.item({0, 1, j}), all.item({1, 0, j}));
  }
}

TEST_F(RecordedTranslator, CrossAttentionIsTheTranslatorsOwn) {
  const Translation done = translator_->translate({"the cat sat"}, {.rules = {.max_length = 7}}).front();
  const TranslatedSentence& sentence = done.candidates.front().sentences.front();
  const auto cross = recording_.of(AttentionKind::cross);
  ASSERT_EQ(static_cast<int64_t>(cross.size()), translator_->decoder_layers());
  for (size_t n = 0; n < cross.size(); ++n) {
    const CrossAttention own = translator_->cross_attention("the cat sat", sentence, static_cast<int64_t>(n));
    EXPECT_EQ(own.source, recording_.texts[0].tokens);
    EXPECT_EQ(own.target, recording_.texts[2].tokens);
    const Tensor weights = cross[n]->weights();
    ASSERT_EQ(weights.shape(), own.weights.shape());
    for (int64_t h = 0; h < weights.size(0); ++h)
      for (int64_t i = 0; i < weights.size(1); ++i)
        for (int64_t j = 0; j < weights.size(2); ++j)
          EXPECT_NEAR(weights.item({h, i, j}), own.weights.item({h, i, j}), 1e-6);
  }
}

TEST_F(RecordedTranslator, StatisticsAreThoseOfTheWeights) {
  for (const RecordedLayer& layer : recording_.layers) {
    const AttentionStatistics statistics = layer.statistics(1);
    const Tensor weights = layer.weights();
    for (int64_t h = 0; h < layer.heads(); ++h) {
      for (int64_t i = 0; i < layer.queries(); ++i) {
        double entropy = 0, most = 0;
        for (int64_t j = 0; j < layer.keys(); ++j) {
          const double w = weights.item({h, i, j});
          entropy -= w > 0 ? w * std::log(w) : 0;
          most = std::max(most, w);
        }
        EXPECT_NEAR(statistics.entropy.item({h, i}), entropy, 1e-4);
        EXPECT_NEAR(statistics.top_weights.item({h, i, 0}), most, 1e-6);
      }
    }
  }
}

// The product of L matrices in double; entries are at most 1, sums of some 5 f32 products.
TEST_F(RecordedTranslator, RolloutIsTheProductOfTheMeanAttentionsAndHalfTheIdentity) {
  for (const AttentionKind kind : {AttentionKind::encoder, AttentionKind::decoder}) {
    const auto layers = recording_.of(kind);
    const Tensor rollout = recording_.rollout(kind);
    const int64_t n = layers.front()->queries();
    std::vector<double> before(static_cast<size_t>(n * n));
    const auto at = [n](int64_t i, int64_t j) { return static_cast<size_t>(i * n + j); };
    for (int64_t i = 0; i < n; ++i) before[at(i, i)] = 1;
    for (size_t l = 0; l < layers.size(); ++l) {
      std::vector<double> after(before.size());
      const int64_t heads = layers[l]->heads();
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < n; ++k) {
          double mean = 0;
          for (int64_t h = 0; h < heads; ++h) mean += naive_weight(*layers[l], h, i, k) / static_cast<double>(heads);
          const double mixed = 0.5 * mean + (i == k ? 0.5 : 0);
          for (int64_t j = 0; j < n; ++j) after[at(i, j)] += mixed * before[at(k, j)];
        }
      }
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) {
          EXPECT_NEAR(rollout.item({static_cast<int64_t>(l), i, j}), after[at(i, j)], 1e-5);
          sum += after[at(i, j)];
        }
        EXPECT_NEAR(sum, 1, 1e-9);
      }
      before = after;
    }
  }
  EXPECT_THROW(recording_.rollout(AttentionKind::cross), Error);
}

class RecordedDecoder : public testing::TestWithParam<ModelPositions> {};

TEST_P(RecordedDecoder, WeightsAreTheReferencesWithEveryBias) {
  const Tokenizer tokenizer =
      train_bpe({"the cat sat on the mat", "a cat and a dog"}, {.vocabulary = 280, .min_frequency = 1});
  const DecoderOnly model({.vocabulary = tokenizer.size(),
                           .width = 24,
                           .heads = 3,
                           .feed_forward = 32,
                           .layers = 2,
                           .positions = GetParam(),
                           .max_length = 24},
                          std::make_shared<ParamStore>());
  const Recording recording = record(model, tokenizer, "the cat and a dog");
  ASSERT_EQ(recording.layers.size(), 2u);
  ASSERT_EQ(recording.texts.size(), 1u);
  EXPECT_EQ(recording.texts[0].tokens.front(), "<s>");
  for (const RecordedLayer& layer : recording.layers) {
    EXPECT_EQ(layer.kind, AttentionKind::decoder);
    EXPECT_EQ(layer.queries(), static_cast<int64_t>(recording.texts[0].tokens.size()));
    const Tensor weights = layer.weights();
    const Tensor wanted = reference::attention_weights(layer.call.q, layer.call.k, layer.options).select(0, 0);
    for (int64_t h = 0; h < layer.heads(); ++h)
      for (int64_t i = 0; i < layer.queries(); ++i)
        for (int64_t j = 0; j < layer.keys(); ++j) EXPECT_NEAR(weights.item({h, i, j}), wanted.item({h, i, j}), 1e-5);
  }
}
INSTANTIATE_TEST_SUITE_P(Positions, RecordedDecoder,
                         testing::Values(ModelPositions::learned, ModelPositions::rotary, ModelPositions::alibi,
                                         ModelPositions::t5));

TEST(Recording, BatchOfSeveralSequencesIsRefused) {
  const DecoderOnly model({.vocabulary = 20, .width = 8, .heads = 2, .feed_forward = 8, .layers = 1},
                          std::make_shared<ParamStore>());
  AttentionRecorder recorder;
  Pass pass = Pass::inference().watched_by(&recorder);
  EXPECT_THROW(model.hidden(token_batch({{1, 2}, {3}}), pass), Error);
}

TEST(Recording, WatchingChangesNothing) {
  const DecoderOnly model({.vocabulary = 20, .width = 8, .heads = 2, .feed_forward = 8, .layers = 2},
                          std::make_shared<ParamStore>());
  AttentionRecorder recorder;
  Pass plain = Pass::inference(), watched = plain.watched_by(&recorder);
  const TokenBatch batch = token_batch({{1, 2, 3, 4}});
  const Tensor a = model.hidden(batch, plain), b = model.hidden(batch, watched);
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(a.item({i, c}), b.item({i, c}));
}

}  // namespace
}  // namespace mh
