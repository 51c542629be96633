// Answerers from data to folder: a run learns what can be learned, is used, and resumes bit for bit.
#include <gtest/gtest.h>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/verbs/answerer.h"
#include "tests/tasks/made_questions.h"
#include "tests/train/observed_run.h"

namespace mh {
namespace {

class AnswerRuns : public testing::Test {
 protected:
  TrainConfig config(const std::string& output, int64_t steps) const {
    TrainConfig c;
    c.task.kind = TaskKind::answer;
    c.recurrent.kind = ModelKind::bert;
    c.model = {.vocabulary = 0,
               .width = 32,
               .heads = 2,
               .feed_forward = 64,
               .encoder_layers = 2,
               .middle = Middle::gelu,
               .max_length = 20};
    c.tokenizer = {.kind = TokenizerKind::words, .min_count = 1, .lowercase = true};
    c.data.train = folder_ / "train.json";
    c.data.valid = folder_ / "valid.json";
    c.data.max_length = 20;
    c.data.examples_per_batch = 16;
    c.optimizer.learning_rate = 5e-3;
    c.optimizer.warmup = 10;
    c.train.output = folder_ / output;
    c.train.steps = steps;
    c.train.save_every = 5;
    c.train.validate_every = 25;
    c.train.threads = 1;
    return c;
  }
  TemporaryFolder folder_;
};

TEST_F(AnswerRuns, LearnTheRuleWithAndWithoutQuestionsThatHaveNoAnswer) {
  for (const bool impossible : {false, true}) {
    test::write_questions(folder_ / "train.json", {.count = 300, .impossible = impossible});
    test::write_questions(folder_ / "valid.json", {.count = 40, .seed = 2, .impossible = impossible});
    const Seen seen = observe(config(impossible ? "v2" : "v1", 150));
    ASSERT_EQ(seen.refusal, "no refusal");
    EXPECT_EQ(seen.outcome.watched, "f1");
    EXPECT_DOUBLE_EQ(seen.outcome.best_validation, 100);
    EXPECT_DOUBLE_EQ(seen.validations.back().value("exact"), 100);
    const Answerer answerer = Answerer::load(seen.outcome.folder);
    const Answer said = answerer("what colour ?", "red red is gold blue", {.no_answer = true});
    EXPECT_EQ(said.text, "gold");
    EXPECT_EQ(said.begin, 11U);
    if (impossible) {
      EXPECT_EQ(answerer("what colour ?", "red red gold blue", {.no_answer = true}).text, "");
    }
    EXPECT_TRUE(Pretrained::load(seen.outcome.folder).unused().empty());
  }
}

TEST_F(AnswerRuns, ResumeBitForBit) {
  test::write_questions(folder_ / "train.json", {.count = 60});
  test::write_questions(folder_ / "valid.json", {.count = 10, .seed = 2});
  observe(config("whole", 12));
  const TrainConfig c = config("parts", 12);
  TrainRequest request{.config = c};
  int64_t steps = 0;
  request.events.on_step = [&](const TrainStep&) { ++steps; };
  request.events.stop_requested = [&] { return steps == 7; };
  EXPECT_TRUE(train(request).stopped);
  EXPECT_FALSE(train({.config = c, .resume = true}).stopped);
  EXPECT_EQ(text_of(folder_ / "whole/model.safetensors"), text_of(folder_ / "parts/model.safetensors"));
}

TEST_F(AnswerRuns, AModelOfOursIsNoBeginning) {
  test::write_questions(folder_ / "train.json", {.count = 20});
  test::write_questions(folder_ / "valid.json", {.count = 5, .seed = 2});
  TrainConfig c = config("x", 1);
  c.start.from = folder_ / "none";
  EXPECT_TRUE(refusal_of([&] { train({.config = c}); }).says("none"));
}

}  // namespace
}  // namespace mh
