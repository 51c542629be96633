// Answering against formulas: the loss over windows, which windows a batch has, and scores that are the answerer's.
#include "multihead/tasks/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "multihead/tasks/models/labelled_model.h"
#include "multihead/tasks/task_type.h"
#include "tests/harness/refusal.h"
#include "tests/models/encoder_folder.h"
#include "tests/tasks/made_questions.h"

namespace mh {
namespace {

class AnsweringQuestions : public testing::Test {
 protected:
  AnsweringQuestions() {
    test::write_questions(folder_ / "train.json", {.count = 20, .impossible = true});
    test::write_questions(folder_ / "valid.json", {.count = 9, .seed = 2, .impossible = true});
    setup_.task.kind = TaskKind::answer;
    setup_.recurrent.kind = ModelKind::bert;
    setup_.model = {.vocabulary = 0,
                    .width = 16,
                    .heads = 2,
                    .feed_forward = 24,
                    .encoder_layers = 1,
                    .middle = Middle::gelu,
                    .dropout = 0,
                    .max_length = 12};
    setup_.tokenizer = {.kind = TokenizerKind::words, .min_count = 1, .lowercase = true};
    setup_.data.train = folder_ / "train.json";
    setup_.data.valid = folder_ / "valid.json";
    setup_.data.examples_per_batch = 3;
    setup_.data.stride = 2;
  }
  static std::unique_ptr<AnswerTask> made(const TaskSetup& setup) {
    auto task = std::make_unique<AnswerTask>(setup);
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
  TemporaryFolder folder_;
  TaskSetup setup_;
};

// Softmax over each window's rows, by hand, of the saved model's logits.
TEST_F(AnsweringQuestions, TheLossIsTheMeanOfBothEndsOverWindows) {
  setup_.data.examples_per_batch = 1000;
  const Pretrained model = Pretrained::load(saved(setup_));
  const Tokenizer tokenizer = Tokenizer::load(folder_ / "model");
  const SquadFile file = read_squad(setup_.data.train);
  double nats = 0;
  int64_t windows = 0, none = 0;
  for (const SquadQuestion& one : file.questions) {
    const std::string& context = file.contexts[one.context];
    for (const Encoded& window : tokenizer.encode_pair_windows(
             one.question, context, {.max_length = 12, .truncate = Truncate::only_second, .stride = 2})) {
      int64_t first = 0;  // the answer is one word, so that it has one row
      for (size_t n = 0; n < window.ids.size() && !one.answers.empty(); ++n)
        if (window.sequences[n] == 1 && window.offsets[n].begin == one.answers[0].begin)
          first = static_cast<int64_t>(n);
      const auto rows = static_cast<int64_t>(window.ids.size());
      const ModelOutputs out =
          model.forward({.tokens = token_batch({window.ids}), .types = tensor<int32_t>(window.types, {rows})});
      for (const char* end : {"start_logits", "end_logits"}) {
        double sum = 0;
        for (int64_t n = 0; n < rows; ++n) sum += std::exp(out[end].item({n}));
        nats += (std::log(sum) - out[end].item({first})) / 2;
      }
      ++windows;
      none += first == 0;
    }
  }
  const auto task = made(setup_);
  ASSERT_EQ(task->batches(1), 1);
  const auto batch = task->batch({0, 0});
  EXPECT_EQ(batch->tokens(), windows);
  EXPECT_GT(windows, 20);  // some contexts are read in two
  EXPECT_GT(none, 7);      // and 7 of the questions have no answer
  Pass pass = Pass::inference();
  const CrossEntropy loss = task->loss(*batch, pass);
  EXPECT_NEAR(loss.loss.item({}), nats / static_cast<double>(windows), 1e-5);
  EXPECT_NEAR(loss.nll.item({}), nats, 1e-4);
  EXPECT_EQ(loss.counted, windows);
}

// The mean over an epoch's batches is the loss of all windows at once only where each has its turn once.
TEST_F(AnsweringQuestions, EveryWindowIsInOneBatchOfAnEpoch) {
  const auto task = made(setup_);
  setup_.data.examples_per_batch = 1000;
  const auto whole = made(setup_);
  Pass pass = Pass::inference();
  const double wanted = whole->loss(*whole->batch({0, 0}), pass).nll.item({});
  double nats = 0;
  int64_t windows = 0;
  for (Position at; at.epoch == 0; at = task->after(at)) {
    const auto batch = task->batch(at);
    EXPECT_LE(batch->tokens(), 3);
    windows += batch->tokens();
    nats += task->loss(*batch, pass).nll.item({});
  }
  EXPECT_EQ(windows, task->facts().train);
  EXPECT_NEAR(nats, wanted, 1e-4);
}

TEST_F(AnsweringQuestions, AValidationIsTheScoreOfWhatTheAnswererSays) {
  const auto task = made(setup_);
  const Verdict verdict = task->validate({});
  EXPECT_EQ(verdict.metrics.front().first, "f1");
  EXPECT_TRUE(task->facts().watched.higher_is_better);
  const Answerer answerer = Answerer::load(saved(setup_));
  const SquadFile file = read_squad(setup_.data.valid);
  std::vector<std::string> said;
  std::vector<std::vector<std::string>> right;
  for (const SquadQuestion& one : file.questions) {
    said.push_back(
        answerer(one.question, file.contexts[one.context], {.max_length = 12, .stride = 2, .no_answer = true}).text);
    right.emplace_back();
    for (const SquadAnswer& each : one.answers) right.back().push_back(each.text);
  }
  const AnswerScores scores = answer_scores(said, right, SquadVersion::v2);
  EXPECT_DOUBLE_EQ(value_of(verdict.metrics, "f1"), scores.f1);
  EXPECT_DOUBLE_EQ(value_of(verdict.metrics, "exact"), scores.exact_match);
  EXPECT_EQ(model_kind_of_folder(folder_ / "model"), "answer");
}

TEST_F(AnsweringQuestions, QuestionsAboutOneContextAreHeldOutTogether) {
  put_text(folder_ / "train.json",
           R"({"data":[{"paragraphs":[{"context":"ada sings","qas":[{"id":"1","question":"who?","answers":[]},)"
           R"({"id":"2","question":"what?","answers":[]}]},{"context":"kurt paints","qas":[)"
           R"({"id":"3","question":"who?","answers":[]},{"id":"4","question":"what?","answers":[]}]}]}]})");
  setup_.data.valid.clear();
  setup_.data.hold_out = 1;
  const AnswerTask task(setup_);
  EXPECT_EQ(task.facts().valid, 2);
  EXPECT_EQ(task.facts().train, 2);
}

TEST_F(AnsweringQuestions, StartFromAnEncoderAndFromAnAnswerer) {
  test::put_encoder(folder_ / "body", "bert_body");
  test::put_encoder(folder_ / "question", "bert_question");
  setup_.recurrent.kind = ModelKind::transformer;
  setup_.model.max_length = 11;
  std::vector<std::string> said;
  setup_.events.on_message = [&](const std::string& text) { said.push_back(text); };
  setup_.from = folder_ / "body";
  made(setup_);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], testing::HasSubstr("tensors are fresh, the first is head."));
  said.clear();
  setup_.from = folder_ / "question";
  saved(setup_);
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(Answerer::load(folder_ / "model")("who ?", "ada sings .").text,
            Answerer::load(folder_ / "question")("who ?", "ada sings .").text);
}

TEST_F(AnsweringQuestions, WhatCannotBeLearnedGetsOneSentence) {
  const auto refused = [&](const std::function<void(TaskSetup&)>& change) {
    TaskSetup setup = setup_;
    change(setup);
    return refusal_of([&] {
             answer_type().check(setup);
             AnswerTask task(setup);
           })
        .sentence;
  };
  EXPECT_THAT(refused([](TaskSetup& s) { s.recurrent.kind = ModelKind::transformer; }),
              testing::HasSubstr("model.kind is \"transformer\"; task.kind \"answer\" expects \"bert\""));
  EXPECT_THAT(refused([](TaskSetup& s) { s.tokenizer.kind = TokenizerKind::bpe; }),
              testing::HasSubstr("the tokenizer puts no special token before a text"));
  EXPECT_THAT(refused([](TaskSetup& s) { s.task.metric = "accuracy"; }),
              testing::HasSubstr("task.metric is \"accuracy\"; expected \"f1\", \"exact\" or \"loss\""));
  EXPECT_THAT(refused([](TaskSetup& s) { s.data.max_length = 6; }),
              testing::HasSubstr("train.json: question 'q0' has 6 tokens; expected fewer than 6"));
  put_text(folder_ / "empty.json", "");
  EXPECT_THAT(refused([&](TaskSetup& s) { s.data.train = folder_ / "empty.json"; }), testing::HasSubstr("empty.json"));
}

}  // namespace
}  // namespace mh
