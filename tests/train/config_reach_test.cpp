// Every key of the configuration reaches what it names: changed alone, it changes that in a whole run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "multihead/base/parallel.h"
#include "multihead/io/checkpoint.h"
#include "multihead/train/config_keys.h"
#include "tests/train/observed_run.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

using Prepare = std::function<void(TrainConfig&)>;
using Expect = std::function<void(const Seen& before, const Seen& now)>;

struct Reach {
  detail::ConfigValue value;
  Expect expect;
  Prepare prepare{};  // of both runs
};

class ConfigReach : public SmallRun {
 protected:
  ConfigReach() : threads_before_(threads()) {
    std::ofstream three(folder_ / "three.tsv"), ten(folder_ / "ten.tsv"), nulls(folder_ / "nulls.txt"),
        twenty(folder_ / "twenty.txt");
    for (int i = 0; i < 80; ++i) three << "1 2\teins zwei\t" << i << " acht acht\n";
    for (int i = 0; i < 10; ++i) ten << "1 2\teins zwei\n";
    for (int i = 0; i < 200; ++i) nulls << "null\n";
    for (int i = 0; i < 20; ++i) twenty << "acht null acht\n";
  }
  ~ConfigReach() override { set_threads(threads_before_); }

  TrainConfig base() const {
    TrainConfig c = config("base", 6);
    c.train.ema = 0;
    c.train.validate_every = 3;
    c.train.threads = 1;
    c.optimizer.warmup = 2;
    return c;
  }
  // The weights before the first step: a step so small that it changes none.
  std::map<std::string, Tensor> beginning(const TrainConfig& config) const {
    TrainConfig c = config;
    c.train.output = folder_ / "beginning";
    c.optimizer.learning_rate = 1e-30;
    std::filesystem::remove_all(c.train.output);
    return observe(c).weights();
  }
  double moved(const Seen& seen) const {
    double sum = 0;
    const auto begin = beginning(seen.config), end = seen.weights();
    for (const auto& [name, tensor] : begin)
      for (int64_t i = 0; i < tensor.count(); ++i)
        sum += std::pow(double{end.at(name).data<float>()[i]} - tensor.data<float>()[i], 2);
    return std::sqrt(sum);
  }

  std::map<std::string, Reach> task_keys() const;
  std::map<std::string, Reach> model_keys() const;
  std::map<std::string, Reach> text_keys() const;
  std::map<std::string, Reach> data_keys() const;
  std::map<std::string, Reach> optimizer_keys() const;
  std::map<std::string, Reach> train_keys() const;
  // Changes every key of the section, each alone, and looks at what `reaches` says of it.
  void walk(const std::string& section, const std::map<std::string, Reach>& reaches) const;

 private:
  int threads_before_;
};

// As many parameters, and another first loss.
void another_function(const Seen& before, const Seen& now) {
  EXPECT_EQ(now.start.parameters, before.start.parameters);
  EXPECT_NE(now.loss(0), before.loss(0));
}
Expect more_parameters(int64_t more) {
  return
      [more](const Seen& before, const Seen& now) { EXPECT_EQ(now.start.parameters, before.start.parameters + more); };
}
void fewer_parameters(const Seen& before, const Seen& now) {
  EXPECT_LT(now.start.parameters, before.start.parameters);
  EXPECT_NE(now.loss(0), before.loss(0));
}
void fewer_pairs(const Seen& before, const Seen& now) {
  EXPECT_LT(now.start.data.train, before.start.data.train);
  EXPECT_GT(now.start.data.train, 0);
}
// Bias correction makes the first step the same; the second is not.
void from_the_second_step(const Seen& before, const Seen& now) {
  EXPECT_EQ(now.loss(0), before.loss(0));
  EXPECT_NEAR(now.loss(1), before.loss(1), 1e-5);
  EXPECT_GT(std::abs(now.loss(3) - before.loss(3)), 1e-5);
}

// A TSV file is a text, too.
std::map<std::string, Reach> ConfigReach::task_keys() const {
  const auto text = [](TrainConfig& c) { c.task.kind = TaskKind::language_model; };
  return {
      {"task.kind",
       {.value = std::string("language_model"),
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.start.data.examples, "pairs");
              EXPECT_EQ(now.start.data.examples, "windows");
              EXPECT_LT(now.start.parameters, before.start.parameters);
              EXPECT_GT(now.validations.at(0).value("bits_per_byte"), 0);
              EXPECT_THAT(refusal_of([&] { now.validations.at(0).value("bleu"); }).sentence,
                          testing::HasSubstr("no metric bleu"));
            }}},
      {"task.packed",
       {.value = false,
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.start.data.train, 200);  // lines
              EXPECT_EQ(before.start.data.train, (before.start.data.tokens + 31) / 32);
              EXPECT_EQ(now.start.data.tokens, before.start.data.tokens);
            },
        .prepare = text}},
      {"task.samples",
       {.value = int64_t{1},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.validations.at(0).samples.size(), 3U);
              EXPECT_EQ(now.validations.at(0).samples.size(), 1U);
            },
        .prepare = text}},
  };
}

// Widths are 16 and 24; a layer's attention has 4 · 16² + 4 · 16 parameters.
std::map<std::string, Reach> ConfigReach::model_keys() const {
  constexpr int64_t kAttention = 4 * 16 * 16 + 4 * 16, kFeedForward = 2 * 16 * 24 + 24 + 16, kNorm = 2 * 16;
  const auto short_model = [](TrainConfig& c) { c.data.max_length = 0; };
  const auto lstm = [](TrainConfig& c) { c.recurrent = {ModelKind::lstm, PairAttention::multiplicative, 12}; };
  TrainConfig first = base();
  first.train.output = folder_ / "first";
  train({.config = first});
  return {
      {"model.from",
       {.value = first.train.output,
        .expect = [](const Seen& before, const Seen& now) { EXPECT_LT(now.loss(0), before.loss(0)); }}},
      {"model.kind", {.value = std::string("gru"), .expect = fewer_parameters, .prepare = lstm}},
      {"model.attention", {.value = std::string("additive"), .expect = more_parameters(4 * 12 * 12 + 12 * 12 + 12), .prepare = lstm}},
      {"model.hidden",
       {.value = int64_t{14},
        .expect = [](const Seen& before, const Seen& now) { EXPECT_GT(now.start.parameters, before.start.parameters); },
        .prepare = lstm}},
      {"model.vocabulary",
       {.value = int64_t{299},
        .expect = [](const Seen&,
                     const Seen& now) { EXPECT_THAT(now.refusal, testing::HasSubstr("model.vocabulary is 299")); }}},
      {"model.width",
       {.value = int64_t{32},
        .expect = [](const Seen& before,
                     const Seen& now) { EXPECT_GT(now.start.parameters, 2 * before.start.parameters); }}},
      {"model.heads", {.value = int64_t{4}, .expect = another_function}},
      {"model.feed_forward", {.value = int64_t{48}, .expect = more_parameters(2 * (2 * 16 * 24 + 24))}},
      {"model.encoder_layers", {.value = int64_t{2}, .expect = more_parameters(kAttention + kFeedForward + 2 * kNorm)}},
      {"model.decoder_layers",
       {.value = int64_t{2}, .expect = more_parameters(2 * kAttention + kFeedForward + 3 * kNorm)}},
      {"model.norm", {.value = std::string("post"), .expect = another_function}},
      {"model.activation", {.value = std::string("gelu"), .expect = another_function}},
      {"model.positions", {.value = std::string("rotary"), .expect = another_function}},
      {"model.dropout", {.value = 0.5, .expect = another_function}},
      {"model.tied",
       {.value = false,
        .expect = [](const Seen& before,
                     const Seen& now) { more_parameters(2 * before.start.data.vocabulary * 16)(before, now); }}},
      {"model.max_length", {.value = int64_t{5}, .expect = fewer_pairs, .prepare = short_model}},
  };
}

std::map<std::string, Reach> ConfigReach::text_keys() const {
  const Tokenizer other = train_bpe({"zwei drei vier null eins sechs sieben acht"}, {.vocabulary = 265});
  put_text(folder_ / "other.json", other.json());
  return {
      {"tokenizer.path",
       {.value = folder_ / "other.json",
        .expect = [other](const Seen&, const Seen& now) { EXPECT_EQ(now.tokenizer().json(), other.json()); }}},
      {"tokenizer.vocabulary",
       {.value = int64_t{270},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_GT(before.start.data.vocabulary, 270);
              EXPECT_EQ(now.start.data.vocabulary, 270);
            }}},
      {"tokenizer.lowercase",
       {.value = true,
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.tokenizer().encode("ACHT"), now.tokenizer().encode("acht"));
              EXPECT_NE(before.tokenizer().encode("ACHT"), before.tokenizer().encode("acht"));
            }}},
      {"tokenizer.normalise",
       {.value = std::string("nfc"),
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.tokenizer().encode("u\xCC\x88"), now.tokenizer().encode("\xC3\xBC"));
              EXPECT_NE(before.tokenizer().encode("u\xCC\x88"), before.tokenizer().encode("\xC3\xBC"));
            }}},
  };
}

std::map<std::string, Reach> ConfigReach::data_keys() const {
  const auto three_columns = [this](TrainConfig& c) { c.data.train = c.data.valid = folder_ / "three.tsv"; };
  const auto an_epoch = [](TrainConfig& c) {
    c.train.steps = 0;
    c.train.epochs = 1;
  };
  return {
      {"data.train",
       {.value = folder_ / "three.tsv",
        .expect = [](const Seen&, const Seen& now) { EXPECT_EQ(now.start.data.train, 80); }}},
      {"data.train_target",
       {.value = folder_ / "nulls.txt",
        .expect =
            [](const Seen& before, const Seen& now) {
              const auto each = static_cast<int64_t>(now.tokenizer().encode("null").size()) + 1;
              EXPECT_EQ(now.start.data.tokens, now.start.data.train * each);
              EXPECT_NE(now.start.data.tokens, before.start.data.tokens);
            }}},
      {"data.valid",
       {.value = folder_ / "ten.tsv",
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.start.data.valid, 20);
              EXPECT_EQ(now.start.data.valid, 10);
            }}},
      {"data.valid_target",
       {.value = folder_ / "twenty.txt",
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.loss(5), before.loss(5));
              EXPECT_NE(now.validations.at(0).loss, before.validations.at(0).loss);
            }}},
      {"data.hold_out",
       {.value = int64_t{7},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.start.data.valid, 0);
              EXPECT_GE(now.start.data.valid, 7);
              EXPECT_EQ(now.start.data.train, before.start.data.train - now.start.data.valid);
              EXPECT_FALSE(now.validations.empty());
            },
        .prepare = [](TrainConfig& c) { c.data.valid.clear(); }}},
      {"data.source_column",
       {.value = int64_t{3},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_GT(now.start.data.source_tokens, before.start.data.source_tokens);
              EXPECT_LE(now.start.data.tokens, before.start.data.tokens);
            },
        .prepare = three_columns}},
      {"data.target_column",
       {.value = int64_t{3},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_GT(now.start.data.tokens, before.start.data.tokens);
              EXPECT_LE(now.start.data.source_tokens, before.start.data.source_tokens);
            },
        .prepare = three_columns}},
      {"data.tokens_per_batch",
       {.value = int64_t{64},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_THAT(now.tokens(), testing::Each(testing::Le(64)));
              EXPECT_THAT(before.tokens(), testing::Contains(testing::Gt(64)));
            }}},
      {"data.window",
       {.value = int64_t{7},
        .expect =
            [](const Seen& before, const Seen& now) {
              // Other batches of the same pairs.
              const auto sum = [](const std::vector<int64_t>& all) {
                int64_t out = 0;
                for (const int64_t each : all) out += each;
                return out;
              };
              EXPECT_EQ(sum(now.tokens()), now.start.data.tokens);
              EXPECT_EQ(sum(before.tokens()), now.start.data.tokens);
              EXPECT_NE(now.tokens(), before.tokens());
            },
        .prepare = an_epoch}},
      {"data.max_length", {.value = int64_t{5}, .expect = fewer_pairs}},
  };
}

std::map<std::string, Reach> ConfigReach::optimizer_keys() const {
  const auto one_step = [](TrainConfig& c) {
    c.train.steps = 1;
    c.optimizer.warmup = 0;
    c.optimizer.schedule = ScheduleKind::constant;
    c.optimizer.learning_rate = 0.25;
  };
  const auto size_counts = [](TrainConfig& c) {
    c.optimizer.epsilon = 1;
    c.optimizer.weight_decay = 0;
  };
  return {
      {"optimizer.learning_rate",
       {.value = 0.01,
        .expect =
            [](const Seen&, const Seen& now) {
              EXPECT_DOUBLE_EQ(now.rate(0), 0.005);
              EXPECT_DOUBLE_EQ(now.rate(1), 0.01);
            }}},
      {"optimizer.beta1", {.value = 0.2, .expect = from_the_second_step}},
      {"optimizer.beta2", {.value = 0.2, .expect = from_the_second_step}},
      {"optimizer.epsilon",
       {.value = 1.0,
        .expect = [this](const Seen& before, const Seen& now) { EXPECT_LT(moved(now), 0.5 * moved(before)); }}},
      {"optimizer.weight_decay",
       {.value = 0.51,  // 0.5 more than the default
        .expect =
            [this](const Seen& before, const Seen& now) {
              const auto begin = beginning(now.config), less = before.weights(), more = now.weights();
              for (const auto& [name, tensor] : begin)
                for (int64_t i = 0; i < tensor.count(); ++i)
                  ASSERT_NEAR(more.at(name).data<float>()[i] - less.at(name).data<float>()[i],
                              -0.25 * 0.5 * tensor.data<float>()[i], 1e-5)
                      << name;
            },
        .prepare = one_step}},
      {"optimizer.clip",
       {.value = 1e-6,
        .expect = [this](const Seen& before, const Seen& now) { EXPECT_LT(moved(now), 0.1 * moved(before)); },
        .prepare = size_counts}},
      {"optimizer.schedule",
       {.value = std::string("linear"),
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_DOUBLE_EQ(now.rate(3), 1e-3 * (1 - 1.0 / 4));
              EXPECT_DOUBLE_EQ(before.rate(3), 1e-3 * (1 + std::cos(M_PI / 4)) / 2);
            }}},
      {"optimizer.warmup",
       {.value = int64_t{5},
        .expect =
            [](const Seen&, const Seen& now) {
              EXPECT_DOUBLE_EQ(now.rate(0), 0.2e-3);
              EXPECT_DOUBLE_EQ(now.rate(4), 1e-3);
            }}},
  };
}

std::map<std::string, Reach> ConfigReach::train_keys() const {
  const auto epochs = [](TrainConfig& c) {
    c.train.steps = 0;
    c.train.epochs = 1;
  };
  const auto unjudged = [](TrainConfig& c) {
    c.data.valid = "";
    c.train.save_every = 3;
  };
  const auto restless = [](TrainConfig& c) {
    c.optimizer.learning_rate = 1;
    c.train.validate_every = 1;
    c.train.steps = 20;
  };
  const auto diverging = [](TrainConfig& c) {
    c.optimizer.learning_rate = 100;
    c.optimizer.weight_decay = 10;
    c.optimizer.schedule = ScheduleKind::constant;
    c.train.steps = 40;
    c.data.valid = "";
  };
  return {
      {"train.output",
       {.value = folder_ / "elsewhere",
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_TRUE(before.config.train.output != now.config.train.output);
              EXPECT_EQ(now.outcome.folder, now.config.train.output);
              EXPECT_TRUE(std::filesystem::exists(now.outcome.folder + "/model.safetensors"));
            }}},
      {"train.epochs",
       {.value = int64_t{3},
        .expect = [](const Seen& before, const Seen& now) { EXPECT_EQ(now.outcome.steps, 3 * before.outcome.steps); },
        .prepare = epochs}},
      {"train.steps",
       {.value = int64_t{5}, .expect = [](const Seen&, const Seen& now) { EXPECT_EQ(now.steps.size(), 5u); }}},
      {"train.seed", {.value = int64_t{2}, .expect = another_function}},
      {"train.precision",
       {.value = std::string("bf16"),
        .expect =
            [](const Seen& before, const Seen& now) {
              another_function(before, now);
              EXPECT_NEAR(now.loss(0), before.loss(0), 0.05 * before.loss(0));
            }}},
      {"train.label_smoothing",
       {.value = 0.0,
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_NEAR(now.nll.at(0), before.nll.at(0), 1e-5);  // the same weights and dropout: not of smoothing
              EXPECT_NEAR(now.loss(0), now.nll.at(0), 1e-5);
              EXPECT_GT(std::abs(before.loss(0) - before.nll.at(0)), 1e-3);
            }}},
      {"train.accumulate",
       {.value = int64_t{2},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.tokens().at(0), before.tokens().at(0) + before.tokens().at(1));
            }}},
      {"train.ema",
       {.value = 0.5,
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_FALSE(before.validations.at(0).other_loss.has_value());
              EXPECT_TRUE(now.validations.at(0).other_loss.has_value());
            }}},
      {"train.validate_every",
       {.value = int64_t{2},
        .expect = [](const Seen&, const Seen& now) { EXPECT_THAT(now.validated(), testing::ElementsAre(2, 4, 6)); }}},
      {"train.save_every",
       {.value = int64_t{2},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_THAT(before.saved, testing::ElementsAre(3, 6));
              EXPECT_THAT(now.saved, testing::ElementsAre(2, 4, 6));
            },
        .prepare = unjudged}},
      {"train.keep",
       {.value = int64_t{1},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(list_checkpoints(before.outcome.folder + "/checkpoints").size(), 2u);
              EXPECT_EQ(list_checkpoints(now.outcome.folder + "/checkpoints").size(), 1u);
            },
        .prepare = unjudged}},
      {"train.patience",
       {.value = int64_t{1},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.steps.size(), 20u);
              ASSERT_LT(now.steps.size(), 20u);
              EXPECT_FALSE(now.validations.back().best);
            },
        .prepare = restless}},
      {"train.give_up_after",
       {.value = int64_t{3},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_THAT(before.refusal, testing::HasSubstr("the last 20 steps"));
              EXPECT_THAT(now.refusal, testing::HasSubstr("the last 3 steps"));
            },
        .prepare = diverging}},
      {"train.threads",
       {.value = int64_t{3},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.threads, 1);
              EXPECT_EQ(now.threads, 3);
            }}},
  };
}

void ConfigReach::walk(const std::string& section, const std::map<std::string, Reach>& reaches) const {
  TrainConfig plain = base();
  plain.train.output = folder_ / "plain";
  const Seen unchanged = observe(plain);
  std::set<std::string> met;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    if (key.section != section) continue;
    SCOPED_TRACE(key.path());
    const auto entry = reaches.find(key.path());
    ASSERT_TRUE(entry != reaches.end()) << "a key without an entry: say here what it changes";
    met.insert(key.path());
    const auto& [value, expect, prepare] = entry->second;
    TrainConfig before = base();
    before.train.output = folder_ / "before-" + key.path();
    if (prepare) prepare(before);
    TrainConfig now = before;
    now.train.output = folder_ / "now-" + key.path();
    ASSERT_TRUE(key.take(now, value));
    expect(prepare ? observe(before) : unchanged, observe(now));
  }
  EXPECT_EQ(met.size(), reaches.size()) << "an entry for a key that does not exist";
}

TEST_F(ConfigReach, OfTheTask) { walk("task", task_keys()); }
TEST_F(ConfigReach, OfTheModel) { walk("model", model_keys()); }
TEST_F(ConfigReach, OfTheTokenizer) { walk("tokenizer", text_keys()); }
TEST_F(ConfigReach, OfTheData) { walk("data", data_keys()); }
TEST_F(ConfigReach, OfTheOptimizer) { walk("optimizer", optimizer_keys()); }
TEST_F(ConfigReach, OfTheRun) { walk("train", train_keys()); }

TEST_F(ConfigReach, EverySectionIsWalked) {
  for (const detail::ConfigKey& key : detail::config_keys()) {
    EXPECT_THAT(key.section, testing::AnyOf("task", "model", "tokenizer", "data", "optimizer", "train"));
  }
}

}  // namespace
}  // namespace mh
