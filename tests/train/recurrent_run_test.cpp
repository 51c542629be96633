// Runs of recurrent nets: each kind learns the pairs, leaves a folder that translates and shows what it looked at, and
// ends with the same bits when it is resumed.
#include <cstring>

#include "multihead/generate/text/translator.h"
#include "multihead/train/memory_need.h"
#include "tests/harness/refusal.h"
#include "tests/train/observed_run.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

class RecurrentRuns : public SmallRun {
 protected:
  TrainConfig recurrent(const std::string& output, const RecurrentChoice& choice, int64_t steps) const {
    TrainConfig c = config(output, steps);
    c.recurrent = choice;
    c.recurrent.hidden = 24;
    c.model.dropout = 0;
    c.train.label_smoothing = 0;
    c.optimizer.learning_rate = 0.01;
    return c;
  }
};

const RecurrentChoice kChoices[] = {{ModelKind::lstm, PairAttention::none},
                                    {ModelKind::gru, PairAttention::additive},
                                    {ModelKind::lstm, PairAttention::multiplicative},
                                    {ModelKind::rnn, PairAttention::multiplicative}};

TEST_F(RecurrentRuns, EveryKindLearnsAndLeavesATranslator) {
  for (const RecurrentChoice& choice : kChoices) {
    const std::string name = fmt::format("run{}{}", static_cast<int>(choice.kind), static_cast<int>(choice.attention));
    const TrainConfig c = recurrent(name, choice, 60);
    const Seen seen = observe(c);
    ASSERT_EQ(seen.refusal, "no refusal") << name;
    // Far below the first: the words are eight, and follow from the source alone.
    EXPECT_LT(seen.loss(59), 0.5 * seen.loss(0)) << name;
    TrainConfig settled = seen.config;
    settled.model.vocabulary = seen.tokenizer().size();
    EXPECT_EQ(detail::parameter_count(settled), seen.start.parameters) << name;

    const Translator translator = Translator::load(c.train.output);
    const Translation written = translator.translate({"1 2"}).front();
    EXPECT_EQ(translator.decoder_layers(), choice.attention == PairAttention::none ? 0 : 1);
    if (choice.attention == PairAttention::none) continue;
    const Candidate& best = written.candidates.front();
    const CrossAttention looked = translator.cross_attention("1 2", best.sentences.front(), 0);
    EXPECT_EQ(looked.weights.size(0), 1);
    EXPECT_EQ(looked.weights.size(1), static_cast<int64_t>(looked.target.size()));
    EXPECT_EQ(looked.weights.size(2), static_cast<int64_t>(looked.source.size()));
  }
}

TEST_F(RecurrentRuns, ResumedRunEndsWithTheSameBits) {
  const RecurrentChoice choice{ModelKind::gru, PairAttention::multiplicative};
  TrainConfig c = recurrent("whole", choice, 6);
  const Seen whole = observe(c);
  c.train.output = folder_ / "parts";
  int64_t steps = 0;
  TrainRequest request{.config = c};
  request.events.stop_requested = [&] { return ++steps >= 4; };
  train(request);
  train({.config = c, .resume = true});
  const auto a = whole.weights(), b = read_safetensors(c.train.output + "/model.safetensors").tensors;
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a)
    EXPECT_EQ(std::memcmp(tensor.view().data, b.at(name).view().data, static_cast<size_t>(tensor.count()) * 4), 0)
        << name;
}

TEST_F(RecurrentRuns, StartsFromTheWeightsOfAnother) {
  const RecurrentChoice choice{ModelKind::lstm, PairAttention::multiplicative};
  const TrainConfig first = recurrent("first", choice, 40);
  const Seen before = observe(first);
  TrainConfig second = recurrent("second", choice, 2);
  second.start.from = first.train.output;
  EXPECT_LT(observe(second).loss(0), before.loss(1));
  second.train.output = folder_ / "third";
  second.recurrent.hidden = 26;
  EXPECT_NE(observe(second).refusal.find("model.hidden is 26, there it is 24"), std::string::npos);
  second.recurrent.kind = ModelKind::transformer;
  EXPECT_NE(observe(second).refusal.find("holds a model of kind 'lstm'; expected transformer"), std::string::npos);
}

TEST_F(RecurrentRuns, Bf16TrainsToo) {
  TrainConfig c = recurrent("bf16", {ModelKind::lstm, PairAttention::multiplicative}, 40);
  c.train.precision = DType::bf16;
  const Seen seen = observe(c);
  ASSERT_EQ(seen.refusal, "no refusal");
  EXPECT_LT(seen.loss(39), 0.7 * seen.loss(0));
}

TEST_F(RecurrentRuns, RefusesWhatARecurrentNetHasNot) {
  const auto said = [&](const std::function<void(TrainConfig&)>& change) {
    TrainConfig c = recurrent("refused", {ModelKind::lstm, PairAttention::additive}, 2);
    change(c);
    return refusal_of([&] { check_config(c); }).sentence;
  };
  EXPECT_EQ(said([](TrainConfig& c) { c.model.heads = 3; }), "no refusal");
  EXPECT_NE(said([](TrainConfig& c) { c.recurrent.hidden = 25; }).find("expected an even number"), std::string::npos);
  EXPECT_NE(said([](TrainConfig& c) { c.model.encoder_layers = 0; }).find("encoder_layers is 0"), std::string::npos);
  EXPECT_NE(said([](TrainConfig& c) { c.task.kind = TaskKind::language_model; }).find("expected translation"),
            std::string::npos);
}

}  // namespace
}  // namespace mh
