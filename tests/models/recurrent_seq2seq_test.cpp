// Recurrent translation models: PyTorch's logits, loss and gradients; token by token the rows of the whole pass;
// sentences that know nothing of their neighbours; and the file.
#include "multihead/models/recurrent_seq2seq.h"

#include <cstring>

#include "multihead/models/recurrent_json.h"
#include "tests/harness/refusal.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

using test::error_against;
using test::Golden;
using Texts = std::vector<std::vector<int32_t>>;

// Rows without the zeros behind them.
Texts unpadded(const Tensor& ids) {
  Texts out;
  for (int64_t b = 0; b < ids.size(0); ++b) {
    out.emplace_back();
    for (int64_t t = 0; t < ids.size(1); ++t)
      if (ids.item({b, t}) != 0) out.back().push_back(static_cast<int32_t>(ids.item({b, t})));
  }
  return out;
}

PairAttention attention_of(const std::string& name) {
  return name == "none"       ? PairAttention::none
         : name == "additive" ? PairAttention::additive
                              : PairAttention::multiplicative;
}

RecurrentConfig golden_config(const Golden& golden) {
  const std::string kind = golden.argument("kind");
  return {.cell = kind == "RNN"    ? Cell::tanh
                  : kind == "LSTM" ? Cell::lstm
                                   : Cell::gru,
          .attention = attention_of(golden.argument("attention")),
          .vocabulary = golden.number("vocabulary"),
          .width = golden.number("width"),
          .hidden = golden.number("hidden"),
          .encoder_layers = golden.number("layers"),
          .decoder_layers = golden.number("layers"),
          .dropout = 0,
          .max_length = 20};
}

class TorchRecurrentModel : public testing::TestWithParam<const char*> {};

TEST_P(TorchRecurrentModel, LogitsLossAndGradientsAreTorchs) {
  const Golden golden(GetParam());
  const auto store = golden.weights();
  const RecurrentSeq2Seq model(golden_config(golden), store);
  const PairBatch batch{.source = token_batch(unpadded(golden.at("input.source"))),
                        .input = token_batch(unpadded(golden.at("input.target"))),
                        .labels = token_batch(unpadded(golden.at("input.labels"))).ids};
  Pass pass = Pass::training(1);
  Tape tape;
  const CrossEntropy entropy = model.loss(batch, pass, 0.1F);
  EXPECT_NEAR(entropy.loss.item({}), golden.at("loss").item({}), 1e-5 * golden.at("loss").item({}));
  test::expect_gradients(golden, *store, tape.backward(entropy.loss));
  Pass still = Pass::inference();
  EXPECT_LT(error_against(model.logits(model.decode(batch.input, model.encode(batch.source, still), still)),
                          golden.at("logits")),
            1e-5);
}

INSTANTIATE_TEST_SUITE_P(Torch, TorchRecurrentModel,
                         testing::Values("recurrent_seq2seq_none", "recurrent_seq2seq_multiplicative",
                                         "recurrent_seq2seq_additive", "recurrent_seq2seq_rnn"));

constexpr PairAttention kAttentions[] = {PairAttention::none, PairAttention::additive, PairAttention::multiplicative};

RecurrentSeq2Seq small_recurrent(PairAttention attention, Cell cell = Cell::lstm) {
  return RecurrentSeq2Seq({.cell = cell,
                           .attention = attention,
                           .vocabulary = 30,
                           .width = 12,
                           .hidden = 14,
                           .encoder_layers = 1,
                           .decoder_layers = 2,
                           .tied = false,
                           .max_length = 9},
                          std::make_shared<ParamStore>());
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.shape() == y.shape() && std::memcmp(x.view().data, y.view().data, static_cast<size_t>(x.count()) * 4) == 0;
}

const Texts kSources{{5, 9, 2}, {7, 8, 9, 10, 11, 2}, {4, 2}}, kInputs{{1, 6}, {1, 13, 14}, {1, 6, 20, 21, 9}};

TEST(RecurrentSeq2Seq, SentenceHasTheSameBitsAloneAndInABatch) {
  for (const PairAttention attention : kAttentions) {
    const RecurrentSeq2Seq model = small_recurrent(attention);
    Pass pass = Pass::inference();
    const Tensor all = model.decode(token_batch(kInputs), model.encode(token_batch(kSources), pass), pass);
    int64_t begin = 0;
    for (size_t n = 0; n < kSources.size(); ++n) {
      const auto end = begin + static_cast<int64_t>(kInputs[n].size());
      const Tensor one = model.decode(token_batch({kInputs[n]}), model.encode(token_batch({kSources[n]}), pass), pass);
      EXPECT_TRUE(same_bits(all.slice(0, begin, end), one)) << static_cast<int>(attention) << " " << n;
      begin = end;
    }
  }
}

// Two hypotheses of the second source, one of the others; then the first source is done.
TEST(RecurrentSeq2Seq, StepsGiveTheRowsOfTheWholePass) {
  for (const PairAttention attention : kAttentions) {
    for (const bool packed : {false, true}) {
      RecurrentSeq2Seq model = small_recurrent(attention, Cell::gru);
      if (packed) model.pack();
      Pass pass = Pass::inference();
      RecurrentHypotheses state = model.begin(model.encode(token_batch(kSources), pass));
      model.step_rows(state, {1, 1, 1}, pass);
      state.choose({0, 1, 1, 2}, {1, 2, 1});
      model.step_rows(state, {5, 6, 7, 8}, pass);
      state.choose({2, 1, 3}, {0, 2, 1});
      const Tensor rows = model.step_rows(state, {10, 11, 12}, pass);
      const auto last = [&](size_t source, const std::vector<int32_t>& written) {
        const Tensor all =
            model.decode(token_batch({written}), model.encode(token_batch({kSources[source]}), pass), pass);
        return all.slice(0, all.size(0) - 1, all.size(0));
      };
      EXPECT_LT(error_against(rows.slice(0, 0, 1), last(1, {1, 7, 10})), 1e-6) << static_cast<int>(attention);
      EXPECT_LT(error_against(rows.slice(0, 1, 2), last(1, {1, 6, 11})), 1e-6) << static_cast<int>(attention);
      EXPECT_LT(error_against(rows.slice(0, 2, 3), last(2, {1, 8, 12})), 1e-6) << static_cast<int>(attention);
    }
  }
}

TEST(RecurrentSeq2Seq, LooksAtTheSourceWithWeightsThatAddUpToOne) {
  for (const PairAttention attention : {PairAttention::additive, PairAttention::multiplicative}) {
    const RecurrentSeq2Seq model = small_recurrent(attention);
    Pass pass = Pass::inference();
    const Tensor p =
        model.attention_of(token_batch({kInputs[2]}), model.encode(token_batch({kSources[1]}), pass), pass);
    ASSERT_EQ(p.shape(), (Shape{1, 5, 6}));
    for (int64_t t = 0; t < 5; ++t) {
      double sum = 0;
      for (int64_t s = 0; s < 6; ++s) sum += p.item({0, t, s});
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
}

TEST(RecurrentSeq2Seq, RefusesWhatItCannotDo) {
  const RecurrentSeq2Seq model = small_recurrent(PairAttention::none);
  Pass pass = Pass::inference();
  const RecurrentMemory memory = model.encode(token_batch(kSources), pass);
  EXPECT_TRUE(refusal_of([&] { model.attention_of(token_batch(kInputs), memory, pass); }).says("without attention"));
  EXPECT_TRUE(refusal_of([&] {
                model.encode(token_batch({std::vector<int32_t>(10, 4)}), pass);
              }).says("a sentence of 10 tokens; expected at most 9"));
  RecurrentHypotheses state = model.begin(memory);
  EXPECT_TRUE(refusal_of([&] { model.step_rows(state, {1}, pass); }).says("1 tokens for 3 hypotheses"));
  EXPECT_TRUE(refusal_of([&] {
                RecurrentSeq2Seq({.hidden = 513}, std::make_shared<ParamStore>());
              }).says("expected an even number, at most 512"));
}

TEST(RecurrentJson, ReadsWhatItWrites) {
  const RecurrentConfig config{.cell = Cell::gru,
                               .attention = PairAttention::additive,
                               .vocabulary = 77,
                               .width = 20,
                               .hidden = 30,
                               .encoder_layers = 3,
                               .decoder_layers = 1,
                               .dropout = 0.25F,
                               .tied = false,
                               .max_length = 50};
  const std::string json = recurrent_to_json(config);
  EXPECT_TRUE(says_recurrent(json));
  EXPECT_FALSE(says_recurrent(R"({"kind": "transformer"})"));
  EXPECT_FALSE(says_recurrent("no JSON"));
  EXPECT_EQ(recurrent_to_json(recurrent_from_json(json, "file")), json);
  EXPECT_TRUE(
      refusal_of([] { recurrent_from_json(R"({"kind": "lstm", "attention": "much"})", "file"); }).says("'attention'"));
  EXPECT_TRUE(
      refusal_of([] { recurrent_from_json(R"({"kind": "lstm", "hidden": 0})", "file"); }).says("'hidden' is 0"));
  EXPECT_TRUE(refusal_of([] { recurrent_from_json("[]", "file"); }).says("no JSON object"));
}

}  // namespace
}  // namespace mh
