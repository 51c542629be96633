// Configurations: which source wins, and that what is written reads back.
#include "multihead/train/config/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <set>

#include "multihead/models/config_json.h"
#include "multihead/train/config/config_keys.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

constexpr const char* kSmall = R"([data]
train = "train.tsv"
valid = "valid.tsv"
[train]
output = "out"
)";

// A good file and what read_config makes of it.
class ConfigFile : public testing::Test {
 protected:
  TrainConfig read(const std::vector<std::string>& overrides = {}, const std::string& more = "") const {
    put_text(folder_ / "a.toml", kSmall + more);
    return read_config(folder_ / "a.toml", overrides);
  }
  TemporaryFolder folder_;
};

// A variable of the environment for the life of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Config, AnEmptyTextGivesTheDefaults) { EXPECT_EQ(to_toml(parse_config("", "a.toml")), to_toml(TrainConfig{})); }

TEST(Config, EveryTypeOfValueIsRead) {
  const TrainConfig config = parse_config(R"(
    [model]
    kind = "transformer"
    width = 512
    norm = "post"
    activation = "swiglu"
    positions = "rotary"
    dropout = 0.25
    tied = false
    [tokenizer]
    normalise = "nfkc"
    [optimizer]
    learning_rate = 2
    schedule = "paper"
    [train]
    output = "models/\u00fc"
    precision = "bf16")",
                                          "a.toml");
  EXPECT_EQ(config.model.width, 512);
  EXPECT_EQ(config.model.norm, NormPlace::after);
  EXPECT_EQ(config.model.middle, Middle::swiglu);
  EXPECT_EQ(config.model.positions, ModelPositions::rotary);
  EXPECT_EQ(config.model.dropout, 0.25F);
  EXPECT_FALSE(config.model.tied);
  EXPECT_EQ(config.tokenizer.normalise, Normalisation::nfkc);
  EXPECT_EQ(config.optimizer.learning_rate, 2.0);
  EXPECT_EQ(config.optimizer.schedule, ScheduleKind::paper);
  EXPECT_EQ(config.train.output, "models/\xC3\xBC");
  EXPECT_EQ(config.train.precision, DType::bf16);
}

TEST_F(ConfigFile, FlagGoesOverEnvironmentOverFileOverDefault) {
  const Variable seed("MULTIHEAD_TRAIN_SEED", "3"), epochs("MULTIHEAD_TRAIN_EPOCHS", "3");
  const TrainConfig config = read({"train.seed=4"}, "seed = 2\nepochs = 2\nkeep = 5\n");
  EXPECT_EQ(config.train.seed, 4);
  EXPECT_EQ(config.train.epochs, 3);
  EXPECT_EQ(config.train.keep, 5);
  EXPECT_EQ(config.train.accumulate, 1);
}

TEST_F(ConfigFile, TheLastOfTwoFlagsCounts) { EXPECT_EQ(read({"train.seed=4", "train.seed=5"}).train.seed, 5); }

TEST_F(ConfigFile, TextNeedsNoQuotesOnTheCommandLine) {
  const TrainConfig config = read({"data.train=a=b.tsv", "model.norm=post", "model.tied=false", "data.valid="});
  EXPECT_EQ(config.data.train, "a=b.tsv");
  EXPECT_EQ(config.model.norm, NormPlace::after);
  EXPECT_FALSE(config.model.tied);
  EXPECT_EQ(config.data.valid, "");
  EXPECT_EQ(read({"data.valid=", "data.hold_out=10", "train.patience=3"}).train.patience, 3);
}

TEST_F(ConfigFile, VariablesOfOthersAreLeftAlone) {
  const Variable other("MULTIHEAD_HOME", "x");
  EXPECT_EQ(read().train.seed, 1);
}

TEST(Config, SavedConfigsDoNotHearTheEnvironment) {
  const Variable seed("MULTIHEAD_TRAIN_SEED", "3");
  EXPECT_EQ(parse_config(kSmall, "a.toml").train.seed, 1);
}

TEST_F(ConfigFile, LengthOfPairsFollowsTheModelUnlessGiven) {
  EXPECT_EQ(read({"model.max_length=99"}).data.max_length, 99);
  EXPECT_EQ(read({"data.max_length=98"}).data.max_length, 98);
}

TEST_F(ConfigFile, VariablesAreRefusedAsTheFileIs) {
  const auto refusal = [&] { return refusal_of([&] { read(); }).sentence; };
  {
    const Variable wrong("MULTIHEAD_TRAIN_EPOCH", "3");
    EXPECT_EQ(refusal(), "MULTIHEAD_TRAIN_EPOCH: there is no key train.epoch; did you mean train.epochs?");
  }
  const Variable wrong("MULTIHEAD_TRAIN_EPOCHS", "many");
  EXPECT_EQ(refusal(), "MULTIHEAD_TRAIN_EPOCHS: train.epochs is \"many\"; expected an integer from 1 to 100000");
}

TEST_F(ConfigFile, ThatCannotBeReadIsSaid) {
  const Refusal refusal = refusal_of([&] { read_config(folder_ / "none.toml"); });
  EXPECT_EQ(refusal.kind, ErrorKind::io);
  EXPECT_TRUE(refusal.says("none.toml")) << refusal.sentence;
}

// Gives the key another value; false where it takes no other.
bool change(const detail::ConfigKey& key, TrainConfig& config) {
  const detail::ConfigValue now = key.value(config);
  std::vector<detail::ConfigValue> others{std::string("a \"quoted\" \\ name\n\x7F"), int64_t{300}, int64_t{3},
                                          int64_t{7}, 0.3};
  for (const char* word : {"post", "geglu", "t5", "nfc", "linear", "bf16", "language_model", "balanced", "additive",
                           "first", "words", "csv", "several", "text"})
    others.emplace_back(std::string(word));
  others.emplace_back(!(std::holds_alternative<bool>(now) && std::get<bool>(now)));
  for (const detail::ConfigValue& other : others)
    if (other.index() == now.index() && other != now && key.take(config, other)) return true;
  return false;
}

TEST(Config, WhatIsWrittenReadsBack) {
  TrainConfig config;
  config.optimizer.epsilon = 1e-17;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    const bool fixed = key.path() == "model.kind";
    const std::string before = to_toml(config);
    EXPECT_EQ(change(key, config), !fixed) << key.path();
    const std::string text = to_toml(config);
    EXPECT_EQ(text == before, fixed) << key.path();
    const TrainConfig again = parse_config(text, "a.toml");
    EXPECT_EQ(key.value(again), key.value(config)) << key.path();
    EXPECT_EQ(to_toml(again), text) << key.path();
  }
}

TEST(Config, ChangesAreNamedUnlessNothingLearnedDependsOnThem) {
  TrainConfig before, now;
  now.train.threads = 3;
  now.train.output = "elsewhere";
  now.train.keep = now.train.save_every = 9;
  EXPECT_TRUE(config_changes(before, now).empty());
  now.model.width = 512;
  now.optimizer.schedule = ScheduleKind::linear;
  EXPECT_EQ(config_changes(before, now),
            (std::vector<std::string>{"model.width was 256 and is 512",
                                      "optimizer.schedule was \"cosine\" and is \"linear\""}));
}

TEST(Config, DefaultsFitTheirOwnKeys) {
  for (const detail::ConfigKey& key : detail::config_keys()) {
    TrainConfig config;
    EXPECT_TRUE(key.take(config, key.value(TrainConfig{}))) << key.path();
    EXPECT_TRUE(key.doc.ends_with(".")) << key.path();
  }
}

TEST(Config, TheModelIsWrittenAsItsFileWritesIt) {
  TrainConfig config;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    if (key.section == "model" && key.name != "kind" && key.name != "from") {
      EXPECT_TRUE(change(key, config)) << key.path();
    }
  }
  // Of recurrent nets and of classifiers, whose files have them elsewhere.
  const std::set<std::string> others{"attention",          "hidden", "pooling", "embedding_dropout",
                                     "classifier_dropout", "patch"};
  const nlohmann::json file = nlohmann::json::parse(config_to_json(config.model));
  for (const detail::ConfigKey& key : detail::config_keys()) {
    if (key.section != "model" || key.name == "from" || others.contains(key.name)) continue;
    ASSERT_TRUE(file.contains(key.name)) << key.path();
    const detail::ConfigValue value = key.value(config);
    if (const auto* number = std::get_if<double>(&value)) {
      EXPECT_EQ(file[key.name].get<float>(), static_cast<float>(*number)) << key.path();
    } else {
      EXPECT_EQ(file[key.name].dump(), detail::value_text(value)) << key.path();
    }
  }
}

TEST(Config, ThePageInTheDocsIsTheTable) {
  const std::string page = text_of(std::string(MH_TEST_DATA) + "/../docs/configuration.md");
  EXPECT_TRUE(page == configuration_page()) << "write it with: multihead train --keys > docs/configuration.md";
}

}  // namespace
}  // namespace mh
