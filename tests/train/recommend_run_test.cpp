// Recommenders from data to folder: a run learns what can be learned, is gone on with, and resumes bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/tasks/verbs/recommender.h"
#include "tests/tasks/made_histories.h"
#include "tests/train/observed_run.h"

namespace mh {
namespace {

class RecommendRuns : public testing::Test {
 protected:
  RecommendRuns() { test::write_histories(folder_ / "train.tsv", {.users = 200}); }
  TrainConfig config(const std::string& output, int64_t steps) const {
    TrainConfig c;
    c.task.kind = TaskKind::recommend;
    c.model = {.vocabulary = 0,
               .width = 32,
               .heads = 2,
               .feed_forward = 64,
               .decoder_layers = 1,
               .positions = ModelPositions::learned,
               .max_length = 10};
    c.data.train = folder_ / "train.tsv";
    c.data.max_length = 10;
    c.data.examples_per_batch = 32;
    c.optimizer.learning_rate = 1e-2;
    c.optimizer.warmup = 10;
    c.train.output = folder_ / output;
    c.train.steps = steps;
    c.train.save_every = 5;
    c.train.validate_every = 50;
    c.train.threads = 1;
    return c;
  }
  TemporaryFolder folder_;
};

TEST_F(RecommendRuns, LearnWhatFollowsWhat) {
  TrainConfig c = config("model", 150);
  c.train.patience = 3;
  const Seen seen = observe(c);
  ASSERT_EQ(seen.refusal, "no refusal");
  EXPECT_EQ(seen.outcome.watched, "ndcg@10");
  EXPECT_DOUBLE_EQ(seen.outcome.best_validation, 100);  // every item is the first of its list
  EXPECT_EQ(seen.start.data.valid, 200);
  const Recommender recommender = Recommender::load(seen.outcome.folder);
  const auto found = recommender(std::vector<std::string>{"film 3", "film 10"}, {.count = 1});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].item, "film 17");
}

TEST_F(RecommendRuns, ResumeBitForBit) {
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

TEST_F(RecommendRuns, StartFromAModelWithItsItems) {
  const TrainConfig first = config("first", 100);
  observe(first);
  TrainConfig second = config("second", 1);
  const double fresh = observe(second).loss(0);
  put_text(folder_ / "train.tsv", text_of(folder_ / "train.tsv") + "u1\tnever seen\t0\n");
  second.start.from = first.train.output;
  second.train.output = folder_ / "third";
  std::vector<std::string> said;
  TrainRequest request{.config = second};
  request.events.on_message = [&](const std::string& text) { said.push_back(text); };
  double loss = 0;
  request.events.on_step = [&](const TrainStep& step) { loss = step.loss; };
  train(request);
  EXPECT_LT(loss, 0.7 * fresh);
  EXPECT_THAT(said, testing::Contains(testing::HasSubstr("an item that the model does not know")));
}

}  // namespace
}  // namespace mh
