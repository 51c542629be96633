// Recommending against formulas: which items are learned, the loss, and scores that are the recommender's.
#include "multihead/tasks/recommend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "multihead/ops/rows/softmax.h"
#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/recommender.h"
#include "tests/harness/refusal.h"
#include "tests/tasks/made_histories.h"

namespace mh {
namespace {

class RecommendingItems : public testing::Test {
 protected:
  RecommendingItems() {
    test::write_histories(folder_ / "train.tsv", {.users = 15});
    setup_.task.kind = TaskKind::recommend;
    setup_.model = {.vocabulary = 0,
                    .width = 16,
                    .heads = 2,
                    .feed_forward = 24,
                    .decoder_layers = 1,
                    .positions = ModelPositions::learned,
                    .dropout = 0,
                    .max_length = 4};
    setup_.data.train = folder_ / "train.tsv";
    setup_.data.examples_per_batch = 3;
  }
  static std::unique_ptr<RecommendTask> made(const TaskSetup& setup) {
    auto task = std::make_unique<RecommendTask>(setup);
    task->make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
    return task;
  }
  std::string saved(const TaskSetup& setup) const {
    std::filesystem::create_directories(folder_ / "model");
    const auto task = made(setup);
    task->begin(folder_ / "model");
    task->save(folder_ / "model");
    return folder_ / "model";
  }
  // p of every id behind these ids, in which the first is <s> or an item.
  static Tensor next(const LanguageModelFolder& model, const std::vector<int32_t>& ids) {
    Pass pass = Pass::inference();
    const Tensor all = softmax(model.model.logits(token_batch({ids}), pass));
    return all.slice(0, all.size(0) - 1, all.size(0)).reshape({all.size(1)});
  }
  TemporaryFolder folder_;
  TaskSetup setup_;
};

// Windows of four are cut from the end; the last two items are not learned.
TEST_F(RecommendingItems, TheLossIsTheMeanOverAllItemsButTheLastTwo) {
  put_text(folder_ / "train.tsv",
           "a\tp\t1\na\tq\t2\na\tr\t3\na\ts\t4\na\tt\t5\na\tu\t6\na\tv\t7\na\tw\t8\nb\tw\t1\nb\tp\t2\n");
  setup_.data.examples_per_batch = 100;
  const LanguageModelFolder model = load_language_model(saved(setup_), kRecommend);
  const auto id = [&](const char* item) { return *model.tokenizer.id(item); };
  const int32_t p = id("p"), q = id("q"), r = id("r"), s = id("s"), t = id("t"), u = id("u"), w = id("w");
  const std::vector<std::pair<std::vector<int32_t>, int32_t>> learned{
      {{1}, p}, {{1, p}, q}, {{q}, r}, {{q, r}, s}, {{q, r, s}, t}, {{q, r, s, t}, u}, {{1}, w}};
  double nats = 0;
  for (const auto& [before, item] : learned) nats -= std::log(next(model, before).item({item}));
  const auto task = made(setup_);
  ASSERT_EQ(task->batches(1), 1);
  EXPECT_EQ(task->facts().train, 3);
  EXPECT_EQ(task->facts().valid, 1);  // b has two items: its last is for the test
  const auto batch = task->batch({0, 0});
  EXPECT_EQ(batch->tokens(), 7);
  Pass pass = Pass::inference();
  EXPECT_NEAR(task->loss(*batch, pass).loss.item({}), nats / 7, 1e-5);
  const Verdict verdict = task->validate({});
  EXPECT_NEAR(value_of(verdict.metrics, "loss"), -std::log(next(model, {r, s, t, u}).item({id("v")})), 1e-5);
}

TEST_F(RecommendingItems, EveryWindowIsInOneBatchOfAnEpoch) {
  const auto task = made(setup_);
  setup_.data.examples_per_batch = 1000;
  const auto whole = made(setup_);
  Pass pass = Pass::inference();
  const CrossEntropy wanted = whole->loss(*whole->batch({0, 0}), pass);
  double nats = 0;
  int64_t items = 0;
  for (Position at; at.epoch == 0; at = task->after(at)) {
    const auto batch = task->batch(at);
    items += batch->tokens();
    nats += task->loss(*batch, pass).nll.item({});
  }
  EXPECT_EQ(items, wanted.counted);
  EXPECT_NEAR(nats, wanted.nll.item({}), 1e-4);
  EXPECT_GT(task->batches(1), 5);
}

TEST_F(RecommendingItems, AScoreIsThatOfWhatTheRecommenderSays) {
  const auto task = made(setup_);
  const Verdict verdict = task->validate({});
  EXPECT_EQ(verdict.metrics.front().first, "ndcg@10");
  const Recommender recommender = Recommender::load(saved(setup_));
  EXPECT_EQ(recommender.items(), 20);
  const Histories read = read_histories(setup_.data.train, setup_.data);
  double hits[2] = {}, gains[2] = {};
  for (const History& user : read.users) {
    for (const size_t left : {1, 2}) {
      std::vector<std::string> before;
      for (size_t n = 0; n + left < user.items.size(); ++n)
        before.push_back(read.items[static_cast<size_t>(user.items[n])]);
      const std::string& item = read.items[static_cast<size_t>(user.items[user.items.size() - left])];
      const std::vector<Recommendation> found = recommender(before);
      ASSERT_EQ(found.size(), 10U);
      for (size_t rank = 1; rank <= 10; ++rank) {
        if (found[rank - 1].item != item) continue;
        hits[left - 1] += 100.0 / static_cast<double>(read.users.size());
        gains[left - 1] += 100 / std::log2(1.0 + static_cast<double>(rank)) / static_cast<double>(read.users.size());
      }
    }
  }
  EXPECT_NEAR(value_of(verdict.metrics, "hr@10"), hits[1], 1e-9);
  EXPECT_NEAR(value_of(verdict.metrics, "ndcg@10"), gains[1], 1e-9);
  LanguageModelFolder model = load_language_model(folder_ / "model", kRecommend);
  const Metrics test = score_histories(model, item_ids(read, model.tokenizer));
  EXPECT_NEAR(value_of(test, "hr@10"), hits[0], 1e-9);
  EXPECT_NEAR(value_of(test, "ndcg@10"), gains[0], 1e-9);
  EXPECT_EQ(test.size(), 6U);
}

TEST_F(RecommendingItems, RecommendationsAreTheSoftmaxOverItemsThatWereNotHad) {
  const LanguageModelFolder model = load_language_model(saved(setup_), kRecommend);
  const Recommender recommender = Recommender::load(folder_ / "model");
  const std::vector<std::string> history{"film 3", "no film", "film 10"};
  const auto id = [&](const std::string& item) { return *model.tokenizer.id(item); };
  const Tensor p = next(model, {1, id("film 3"), id("film 10")});
  double open = 0, all = 0;
  for (int32_t n = 4; n < 24; ++n) {
    all += p.item({n});
    if (n != id("film 3") && n != id("film 10")) open += p.item({n});
  }
  const std::vector<Recommendation> found = recommender(history, {.count = 100});
  ASSERT_EQ(found.size(), 18U);
  for (size_t n = 0; n < found.size(); ++n) {
    EXPECT_NEAR(found[n].score, p.item({id(found[n].item)}) / open, 1e-6);
    EXPECT_LE(found[n].score, n > 0 ? found[n - 1].score : 1);
  }
  const std::vector<Recommendation> again = recommender(history, {.count = 20, .seen = true});
  ASSERT_EQ(again.size(), 20U);
  EXPECT_NEAR(again[0].score, p.item({id(again[0].item)}) / all, 1e-6);
  EXPECT_FALSE(recommender.knows("no film"));
  EXPECT_FALSE(recommender.knows("<s>"));
  EXPECT_EQ(recommender(std::vector<std::string>{}).size(), 10U);
  EXPECT_TRUE(
      refusal_of([&] { recommender(history, {.count = 0}); }).says("0 items are asked for; expected 1 or more"));
  EXPECT_EQ(model_kind_of_folder(folder_ / "model"), "recommend");
  EXPECT_EQ(refusal_of([&] { load_language_model(folder_ / "model"); }).sentence,
            "'" + folder_.path() +
                "/model': is a recommend language model; expected a language model: use `multihead recommend`");
}

TEST_F(RecommendingItems, WhatIsNotTheirsGetsOneSentence) {
  const auto refused = [&](const std::function<void(TaskSetup&)>& change) {
    TaskSetup setup = setup_;
    change(setup);
    return refusal_of([&] { recommend_type().check(setup); }).sentence;
  };
  EXPECT_THAT(refused([](TaskSetup& s) { s.data.valid = "x"; }),
              testing::HasSubstr("data.valid is given, and a recommender is judged by the last items"));
  EXPECT_THAT(refused([](TaskSetup& s) { s.data.hold_out = 3; }), testing::HasSubstr("data.hold_out is given"));
  EXPECT_THAT(refused([](TaskSetup& s) { s.data.item = "1"; }),
              testing::HasSubstr("data.user is column 1, data.item 1, data.time 3; expected different columns"));
  EXPECT_THAT(refused([](TaskSetup& s) { s.task.metric = "f1"; }),
              testing::HasSubstr("expected \"ndcg@10\", \"hr@10\" or \"loss\""));
}

}  // namespace
}  // namespace mh
