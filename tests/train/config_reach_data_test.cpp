// What the keys of data, optimiser and run change.
#include "tests/train/config_reach.h"

#include "tests/tasks/pixels/pictures.h"
#include "tests/tasks/pixels/tones.h"

namespace mh {

void ConfigReach::pictured(TrainConfig& c) const {
  write_pictures(folder_ / "pictures", 3);
  c.task.kind = TaskKind::image_class;
  c.data.train = c.data.valid = folder_ / "pictures";
}

void ConfigReach::spoken(TrainConfig& c) const {
  write_tones(folder_ / "tones", 3);
  c.task.kind = TaskKind::speech_class;
  c.data.frames = 20;
  c.data.train = c.data.valid = folder_ / "tones";
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
      {"data.hold_out_share",
       {.value = 0.1,
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.start.data.valid, 0);
              EXPECT_GE(now.start.data.valid, 20);
              EXPECT_EQ(now.start.data.train, before.start.data.train - now.start.data.valid);
            },
        .prepare = [](TrainConfig& c) { c.data.valid.clear(); }}},
      {"data.lines",
       {.value = std::string("text"),
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.tokenizer().encode("\n").size(), 2U);  // a space is put before a text
              EXPECT_EQ(now.tokenizer().encode("\n").size(), 1U);
              EXPECT_NE(now.loss(0), before.loss(0));
            },
        .prepare = [](TrainConfig& c) { c.task.kind = TaskKind::language_model; }}},
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
      {"data.text",
       {.value = int64_t{3},
        .expect = [](const Seen& before,
                     const Seen& now) { EXPECT_GT(now.start.data.source_tokens, before.start.data.source_tokens); },
        .prepare = labelled()}},
      {"data.label",
       {.value = int64_t{3},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.start.data.examples, "texts with 2 labels");
              EXPECT_EQ(now.start.data.examples, "texts with 60 labels");
            },
        .prepare = labelled()}},
      {"data.label_separator",
       {.value = std::string("e"),  // "yes" is two labels then, and a label has a row of 16 and a bias
        .expect = more_parameters(16 + 1),
        .prepare =
            [this](TrainConfig& c) {
              labelled()(c);
              c.task.labels = LabelKind::several;
            }}},
      {"data.pair",
       {.value = int64_t{3},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_GT(now.start.data.source_tokens, before.start.data.source_tokens);
              EXPECT_GT(now.start.parameters, before.start.parameters);
            },
        .prepare = labelled()}},
      {"data.user",
       {.value = int64_t{2},
        .expect = [](const Seen& before, const Seen& now) { EXPECT_NE(now.start.data.valid, before.start.data.valid); },
        .prepare = recommending()}},
      {"data.item",
       {.value = int64_t{1},
        .expect = [](const Seen& before,
                     const Seen& now) { EXPECT_NE(now.start.data.vocabulary, before.start.data.vocabulary); },
        .prepare = recommending()}},
      {"data.time",
       {.value = std::string(),
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.start.data.tokens, before.start.data.tokens);
              EXPECT_NE(now.loss(0), before.loss(0));
            },
        .prepare = recommending()}},
      {"data.format",
       {.value = std::string("csv"),
        .expect = [](const Seen&,
                     const Seen& now) { EXPECT_THAT(now.refusal, testing::HasSubstr("no text with a label")); },
        .prepare = labelled()}},
      {"data.header",
       {.value = true,
        .expect = [](const Seen& before,
                     const Seen& now) { EXPECT_EQ(now.start.data.train, before.start.data.train - 1); },
        .prepare = labelled()}},
      {"data.max_broken",
       {.value = int64_t{0},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.start.data.train, 60);
              EXPECT_THAT(now.refusal, testing::HasSubstr("broken.tsv':61: 1 column; expected text in column 2"));
            },
        .prepare = labelled("broken.tsv")}},
      {"data.examples_per_batch",
       {.value = int64_t{7},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.tokens().at(0), 60);
              EXPECT_EQ(now.tokens().at(0), 7);
            },
        .prepare = labelled()}},
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
      {"data.stride",
       {.value = int64_t{0},
        .expect = [](const Seen& before, const Seen& now) { EXPECT_LT(now.start.data.train, before.start.data.train); },
        .prepare = asked()}},
      {"data.image_size",
       {.value = int64_t{4},
        .expect = more_parameters(-3 * 16),  // 1 patch of 4 x 4, not 4
        .prepare = [this](TrainConfig& c) { pictured(c); }}},
      {"data.shift",
       {.value = int64_t{2}, .expect = another_function, .prepare = [this](TrainConfig& c) { pictured(c); }}},
      {"data.flip", {.value = true, .expect = another_function, .prepare = [this](TrainConfig& c) { pictured(c); }}},
      {"data.colour_noise",
       {.value = 0.5, .expect = another_function, .prepare = [this](TrainConfig& c) { pictured(c); }}},
      {"data.frames",
       {.value = int64_t{40},
        .expect = more_parameters(5 * 16),  // 10 patches of 4 frames, not 5
        .prepare = [this](TrainConfig& c) { spoken(c); }}},
      {"data.time_mask",
       {.value = int64_t{10}, .expect = another_function, .prepare = [this](TrainConfig& c) { spoken(c); }}},
      {"data.mel_mask",
       {.value = int64_t{20}, .expect = another_function, .prepare = [this](TrainConfig& c) { spoken(c); }}},
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
      {"optimizer.floor",
       {.value = 0.5,
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_DOUBLE_EQ(now.rate(1), before.rate(1));
              EXPECT_DOUBLE_EQ(now.rate(3), 1e-3 * (0.5 + 0.5 * (1 + std::cos(M_PI / 4)) / 2));
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
              EXPECT_FALSE(before.validations.at(0).other_value.has_value());
              EXPECT_TRUE(now.validations.at(0).other_value.has_value());
            }}},
      {"train.layer_decay",
       {.value = 0.1,
        .expect =
            [this](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.loss(0), before.loss(0));
              EXPECT_LT(moved(now), 0.5 * moved(before));  // most weights are in the table and the first layer
            }}},
      {"train.frozen",
       {.value = int64_t{1},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.loss(0), before.loss(0));
              const auto start = read_safetensors(now.config.start.from + "/model.safetensors").tensors;
              EXPECT_EQ(now.weights().at("embedding.weight").item({5, 5}), start.at("embedding.weight").item({5, 5}));
              EXPECT_NE(before.weights().at("embedding.weight").item({5, 5}),
                        start.at("embedding.weight").item({5, 5}));
            },
        .prepare =
            [this](TrainConfig& c) {
              TrainConfig first = base();
              first.train.output = folder_ / "started-from";
              train({.config = first});
              c.start.from = first.train.output;
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

}  // namespace mh
