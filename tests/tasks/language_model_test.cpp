// Language models against the formulas: every token's probability taken alone, from the logits of its own prefix.
#include "multihead/tasks/language_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "multihead/models/model_file.h"
#include "multihead/tasks/task_type.h"
#include "multihead/text/unicode/utf8.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class LanguageModels : public testing::Test {
 protected:
  LanguageModels() {
    put_text(folder_ / "train.txt", "the cat sat\non a mat\nthe dog sat too\nand so on\n");
    put_text(folder_ / "valid.txt", "a cat sat on the mat\nthe  dog\n");
    setup_.task = {.kind = TaskKind::language_model, .packed = true, .samples = 2};
    setup_.model = {.vocabulary = 0,
                    .width = 16,
                    .heads = 2,
                    .feed_forward = 24,
                    .encoder_layers = 0,
                    .decoder_layers = 2,
                    .max_length = 7};
    setup_.tokenizer.vocabulary = 275;
    setup_.data.train = folder_ / "train.txt";
    setup_.data.valid = folder_ / "valid.txt";
    setup_.data.tokens_per_batch = 20;
  }
  // A fresh model in its folder.
  LanguageModelFolder saved(const TaskSetup& setup, const std::string& name) const {
    LanguageModelTask task(setup);
    task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
    const std::string folder = folder_ / name;
    std::filesystem::create_directories(folder);
    task.begin(folder);
    task.save(folder);
    return load_language_model(folder);
  }
  // -log p of the last token of a text, from the logits of the tokens before it, in double.
  static double nats_of_last(const DecoderOnly& model, std::vector<int32_t> text) {
    const int32_t last = text.back();
    text.pop_back();
    text.insert(text.begin(), model.config().begin);
    Pass pass = Pass::inference();
    const Tensor rows = model.hidden(token_batch({text}), pass);
    const Tensor logits = model.logits(rows.slice(0, rows.size(0) - 1, rows.size(0)));
    double largest = -INFINITY, sum = 0;
    for (int64_t v = 0; v < logits.size(1); ++v) largest = std::max<double>(largest, logits.item({0, v}));
    for (int64_t v = 0; v < logits.size(1); ++v) sum += std::exp(logits.item({0, v}) - largest);
    return largest + std::log(sum) - logits.item({0, last});
  }
  // Windows of `longest` tokens, cut here by hand.
  static double nats_by_definition(const LanguageModelFolder& m, const std::vector<std::string>& lines, bool packed) {
    std::vector<std::vector<int32_t>> texts(1);
    for (const std::string& line : lines) {
      const std::vector<int32_t> ids = m.tokenizer.encode(line);
      texts.back().insert(texts.back().end(), ids.begin(), ids.end());
      texts.back().push_back(2);
      if (!packed) texts.emplace_back();
    }
    double nats = 0;
    const auto longest = static_cast<size_t>(m.model.config().max_length);
    for (const std::vector<int32_t>& text : texts)
      for (size_t n = 0; n < text.size(); ++n)
        nats += nats_of_last(m.model, {text.begin() + static_cast<int64_t>(n / longest * longest),
                                       text.begin() + static_cast<int64_t>(n) + 1});
    return nats;
  }

  TemporaryFolder folder_;
  TaskSetup setup_;
};

TEST_F(LanguageModels, PerplexityIsThatOfTheFormula) {
  LanguageModelFolder m = saved(setup_, "model");
  for (const bool packed : {true, false}) {
    const double nats = nats_by_definition(m, {"a cat sat on the mat", "the  dog"}, packed);
    const TextScores scores = score_text(m, folder_ / "valid.txt", {.packed = packed, .tokens_per_batch = 20});
    EXPECT_NEAR(scores.nats, nats, 1e-5 * nats);  // a hundred roundings of f32
    EXPECT_EQ(scores.tokens, static_cast<int64_t>(m.tokenizer.encode("a cat sat on the mat").size() +
                                                  m.tokenizer.encode("the  dog").size() + 2));
    const Metrics metrics = scores.metrics();
    ASSERT_EQ(metrics.size(), 5U);
    EXPECT_EQ(metrics[0].first, "loss");
    EXPECT_NEAR(metrics[0].second, nats / static_cast<double>(scores.tokens), 1e-4);
    EXPECT_EQ(metrics[1].first, "perplexity");
    EXPECT_NEAR(std::log(metrics[1].second), nats / static_cast<double>(scores.tokens), 1e-4);
    EXPECT_EQ(metrics[2].first, "perplexity_per_word");
    EXPECT_NEAR(std::log(metrics[2].second), nats / 8, 1e-3);
    EXPECT_EQ(metrics[3].first, "bits_per_byte");
    EXPECT_NEAR(metrics[3].second, nats / std::log(2) / (21 + 9), 1e-4);
    EXPECT_EQ(metrics[4].first, "perplexity_per_word_and_line");
    EXPECT_NEAR(std::log(metrics[4].second), nats / (8 + 2), 1e-3);
  }
}

// Token n, from 0, is new in the first window that holds it; windows of 7 begin 3 apart.
TEST_F(LanguageModels, WithAStrideATokenIsPredictedFromTheWindowThatBringsIt) {
  setup_.task.stride = 3;
  LanguageModelFolder m = saved(setup_, "model");
  std::vector<int32_t> ids;
  for (const char* line : {"a cat sat on the mat", "the  dog"}) {
    const std::vector<int32_t> more = m.tokenizer.encode(line);
    ids.insert(ids.end(), more.begin(), more.end());
    ids.push_back(2);
  }
  double nats = 0;
  for (int64_t n = 0; n < static_cast<int64_t>(ids.size()); ++n) {
    const int64_t begin = n < 7 ? 0 : (n - 4) / 3 * 3;  // the least multiple of 3 that is more than n - 7
    nats += nats_of_last(m.model, {ids.begin() + begin, ids.begin() + n + 1});
  }
  const TextScores scores = score_text(m, folder_ / "valid.txt", {.stride = 3, .tokens_per_batch = 20});
  EXPECT_NEAR(scores.nats, nats, 1e-5 * nats);
  EXPECT_EQ(scores.tokens, static_cast<int64_t>(ids.size()));
  EXPECT_GT(std::abs(score_text(m, folder_ / "valid.txt").nats - nats), 1e-3 * nats);

  LanguageModelTask task(setup_);
  task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
  EXPECT_EQ(task.validate({.answers = false}).metrics, scores.metrics());
  EXPECT_EQ(task.facts().tokens, [&] {
    setup_.task.stride = 0;
    return LanguageModelTask(setup_).facts().tokens;
  }());
  EXPECT_TRUE(refusal_of([&] { score_text(m, folder_ / "valid.txt", {.longest = 8}); }).says("at most the 7"));
}

// Every character and every line's break is one token, and none is added.
TEST_F(LanguageModels, ATextAsItIsComesBackFromItsTokens) {
  const std::string text = "the cat\n\n  sat\n\n\non a mat\n";
  put_text(folder_ / "train.txt", text);
  put_text(folder_ / "valid.txt", "a\n\ncat\n");
  setup_.data.lines = TextLines::text;
  for (const TokenizerKind kind : {TokenizerKind::characters, TokenizerKind::bpe}) {
    setup_.tokenizer = {.kind = kind, .min_count = 1, .vocabulary = 260};
    LanguageModelTask task(setup_);
    EXPECT_EQ(task.facts().tokens, static_cast<int64_t>(text.size()));
    const std::string name = kind == TokenizerKind::bpe ? "bpe" : "characters";
    LanguageModelFolder m = saved(setup_, name);
    EXPECT_EQ(m.tokenizer.decode(m.tokenizer.encode(text)), text);
    const TextWindows windows(PlainText(folder_ / "train.txt", TextLines::text), m.tokenizer,
                              {.longest = 100, .end = line_break_of(m.tokenizer)});
    ASSERT_EQ(windows.size(), 1);
    EXPECT_EQ(m.tokenizer.decode({windows[0].begin(), windows[0].end()}), text);

    const TextScores scores = score_text(m, folder_ / "valid.txt", {.lines = TextLines::text});
    EXPECT_EQ(scores.tokens, 7);
    EXPECT_EQ(scores.lines, 3);
    EXPECT_EQ(scores.words, 2);
    std::vector<int32_t> ids = m.tokenizer.encode("a\n\ncat\n");
    double nats = 0;
    for (int64_t n = 1; n <= 7; ++n) nats += nats_of_last(m.model, {ids.begin(), ids.begin() + n});
    EXPECT_NEAR(scores.nats, nats, 1e-5 * nats);
    task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
    EXPECT_NEAR(task.validate({}).metrics[0].second, nats / 7, 1e-5 * nats);
  }
}

TEST_F(LanguageModels, ATextAsItIsHoldsOutAShareOfItsBytes) {
  put_text(folder_ / "train.txt", "the cat sat on the mat\n\nand so on and on\na\n\nb\n");  // 23, 1, 17, 2, 1, 2
  setup_.tokenizer = {.kind = TokenizerKind::characters, .min_count = 1};
  setup_.data.valid.clear();
  setup_.data.hold_out_share = 0.1;  // of 46 bytes: the last three lines
  setup_.data.lines = TextLines::text;
  EXPECT_EQ(LanguageModelTask(setup_).facts().tokens, 46 - 5);
  setup_.data.hold_out_share = 0;
  setup_.data.hold_out = 2;
  EXPECT_EQ(LanguageModelTask(setup_).facts().tokens, 46 - 3);
}

TEST_F(LanguageModels, WhatATextAsItIsCannotBeIsRefused) {
  const auto refused = [&](const std::function<void(TaskSetup&)>& change) {
    TaskSetup setup = setup_;
    change(setup);
    return refusal_of([&] {
             language_model_type().check(setup);
             LanguageModelTask task(setup);
           })
        .sentence;
  };
  EXPECT_EQ(refused([](TaskSetup& s) {
              s.data.lines = TextLines::text;
              s.task.packed = false;
            }),
            "config: task.packed is false, and data.lines is \"text\", where a line is nothing for itself; expected "
            "true");
  EXPECT_NE(refused([](TaskSetup& s) {
              s.data.lines = TextLines::text;
              s.tokenizer.kind = TokenizerKind::words;
            }).find("the tokenizer makes nothing of a line's break"),
            std::string::npos);
  EXPECT_EQ(refused([](TaskSetup& s) { s.task.stride = 8; }),
            "config: task.stride is 8; expected at most data.max_length, 7");
}

TEST_F(LanguageModels, AValidationIsTheScoreOfItsText) {
  for (const bool packed : {true, false}) {
    setup_.task.packed = packed;
    LanguageModelFolder m = saved(setup_, packed ? "packed" : "lines");
    LanguageModelTask task(setup_);
    task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
    const TextScores scores = score_text(m, folder_ / "valid.txt", {.packed = packed, .tokens_per_batch = 20});
    const Verdict verdict = task.validate({});
    EXPECT_EQ(verdict.metrics, scores.metrics());
    EXPECT_EQ(verdict.samples.size(), 2U);
    for (const auto& sample : verdict.samples) EXPECT_FALSE(utf8_error(sample)) << sample;
    EXPECT_TRUE(task.validate({.answers = false}).samples.empty());
  }
}

TEST_F(LanguageModels, BatchesHoldEveryTokenOnceAndTheLossIsTheMeanOverThem) {
  LanguageModelTask task(setup_);
  task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
  const LanguageModelFolder m = saved(setup_, "model");
  double nats = 0;
  int64_t tokens = 0;
  Position at;
  while (at.epoch == 0) {
    const auto batch = task.batch(at);
    Pass pass = Pass::inference();
    nats += task.loss(*batch, pass).nll.item({});
    tokens += batch->tokens();
    EXPECT_LE(batch->tokens(), 20);
    at = task.after(at);
  }
  EXPECT_EQ(tokens, task.facts().tokens);
  const double wanted = nats_by_definition(m, {"the cat sat", "on a mat", "the dog sat too", "and so on"}, true);
  EXPECT_NEAR(nats, wanted, 1e-5 * wanted);
}

// A model whose logits are all alike draws any of its tokens: by its output alone.
TEST_F(LanguageModels, SamplesFollowTheModelsProbabilities) {
  setup_.task.samples = 2000;
  setup_.model.tied = false;
  const auto samples_with = [&](uint64_t seed) {
    setup_.seed = seed;
    LanguageModelTask task(setup_);
    const auto store = std::make_shared<ParamStore>();
    task.make_model(store);
    const Tensor output = store->values().at("output.weight");
    std::fill_n(output.data<float>(), output.count(), 0.0F);
    return task.validate({}).samples;
  };
  const std::vector<std::string> samples = samples_with(3);
  ASSERT_EQ(samples.size(), 2000U);
  std::map<char, int> counts;
  for (const std::string& sample : samples)
    for (const char c : sample) ++counts[c];
  // Six tokens or fewer of 275; five standard deviations of a binomial.
  for (const char c : {'!', '0', 'A', 'Z', '~'}) EXPECT_NEAR(counts[c], 2000 * 5.93 / 275, 33) << c;
  EXPECT_EQ(samples, samples_with(3));
  EXPECT_NE(samples, samples_with(4));
}

TEST_F(LanguageModels, AFolderIsKnownForWhatItIs) {
  saved(setup_, "model");
  EXPECT_EQ(model_kind_of_folder(folder_ / "model"), "language_model");
  EXPECT_EQ(model_kind_of_folder(folder_ / "none"), "");
  EXPECT_TRUE(refusal_of([&] { load_transformer(folder_ / "model/model.safetensors"); }).says("language_model"));
  train_bpe({"other text"}, {.vocabulary = 275}).save(folder_ / "model/tokenizer.json");
  EXPECT_TRUE(refusal_of([&] { load_language_model(folder_ / "model"); }).says("does not belong to"));
}

}  // namespace
}  // namespace mh
