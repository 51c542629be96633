// What a configuration may not say: one sentence each, with the line and the nearest name.
#include <gtest/gtest.h>

#include "multihead/train/config/config.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

template <class Call>
std::string sentence_of(Call&& call) {
  const Refusal refusal = refusal_of(call);
  EXPECT_EQ(refusal.kind, ErrorKind::invalid_argument);
  return refusal.sentence;
}

std::string of_text(const std::string& toml) {
  return sentence_of([&] { parse_config(toml, "a.toml"); });
}

// Of flags over a good file.
std::string of_flags(const std::vector<std::string>& overrides) {
  const TemporaryFolder folder;
  put_text(folder / "a.toml", "data.train = \"train.tsv\"\ndata.valid = \"valid.tsv\"\ntrain.output = \"out\"\n");
  return sentence_of([&] { read_config(folder / "a.toml", overrides); });
}

TEST(ConfigRefusals, UnknownKeysComeWithLineAndNearestName) {
  EXPECT_EQ(of_text("[model]\nwidth = 8\nhaeds = 4\n"),
            "a.toml:3: there is no key model.haeds; did you mean model.heads?");
  EXPECT_EQ(of_text("[data]\nlearning_rate = 1\n"),
            "a.toml:2: there is no key data.learning_rate; did you mean optimizer.learning_rate?");
  EXPECT_EQ(of_text("[train]\nlaerning_rate = 1\n"),
            "a.toml:2: there is no key train.laerning_rate; did you mean optimizer.learning_rate?");
  EXPECT_EQ(
      of_text("[tokenizer]\nq = 1\n"),
      "a.toml:2: there is no key tokenizer.q; expected one of path, kind, min_count, vocabulary, lowercase, normalise");
}

TEST(ConfigRefusals, KeysOutsideSectionsAreToldWhereTheyBelong) {
  EXPECT_EQ(of_text("seed = 1\n"), "a.toml:1: there is no key seed; did you mean train.seed?");
  EXPECT_EQ(of_text("q = 1\n"),
            "a.toml:1: there is no key q; the sections are task, model, tokenizer, data, optimizer, train");
}

TEST(ConfigRefusals, UnknownSections) {
  EXPECT_EQ(of_text("\n[modle]\n"), "a.toml:2: there is no section [modle]; did you mean [model]?");
  EXPECT_EQ(of_text("[zzz]\n"),
            "a.toml:1: there is no section [zzz]; the sections are task, model, tokenizer, data, optimizer, train");
  EXPECT_EQ(of_text("[[model]]\nwidth = 1\n"), "a.toml:1: model is an array; expected a section [model]");
  EXPECT_EQ(of_text("model = 1\n"), "a.toml:1: model is 1; expected a section [model]");
}

TEST(ConfigRefusals, WrongTypes) {
  EXPECT_EQ(of_text("[model]\nwidth = \"big\"\n"),
            "a.toml:2: model.width is \"big\"; expected an integer from 1 to 65536");
  EXPECT_EQ(of_text("[model]\nwidth = 8.0\n"), "a.toml:2: model.width is 8.0; expected an integer from 1 to 65536");
  EXPECT_EQ(of_text("[model]\ntied = 1\n"), "a.toml:2: model.tied is 1; expected true or false");
  EXPECT_EQ(of_text("[train]\noutput = 1\n"), "a.toml:2: train.output is 1; expected text");
  EXPECT_EQ(of_text("[model]\nnorm = \"prenorm\"\n"),
            "a.toml:2: model.norm is \"prenorm\"; expected one of \"pre\", \"post\"");
  EXPECT_EQ(of_text("[model]\nkind = \"mamba\"\n"),
            "a.toml:2: model.kind is \"mamba\"; expected one of \"transformer\", \"lstm\", \"gru\", \"rnn\", \"bert\", "
            "\"distilbert\", \"modernbert\"");
  EXPECT_EQ(of_text("[model]\nwidth = [1]\n"),
            "a.toml:2: model.width is an array; expected an integer from 1 to 65536");
  EXPECT_EQ(of_text("[model.width]\n"), "a.toml:1: model.width is a table; expected an integer from 1 to 65536");
  EXPECT_EQ(of_text("[model]\nwidth = 1979-05-27\n"),
            "a.toml:2: model.width is a date or a time; expected an integer from 1 to 65536");
}

TEST(ConfigRefusals, ValuesOutsideTheirRange) {
  EXPECT_EQ(of_text("[model]\nwidth = 0\n"), "a.toml:2: model.width is 0; expected an integer from 1 to 65536");
  EXPECT_EQ(of_text("[model]\nwidth = 65537\n"), "a.toml:2: model.width is 65537; expected an integer from 1 to 65536");
  EXPECT_EQ(of_text("[train]\nseed = -1\n"), "a.toml:2: train.seed is -1; expected an integer, at least 0");
  for (const char* value : {"1", "-0.5", "nan", "0.99999999999"})  // the last is 1 as a float
    EXPECT_EQ(of_text(fmt::format("[model]\ndropout = {}\n", value)),
              fmt::format("a.toml:2: model.dropout is {}; expected a number, at least 0 and below 1", value));
  for (const char* value : {"0", "1000.5", "inf"})
    EXPECT_EQ(
        of_text(fmt::format("[optimizer]\nlearning_rate = {}\n", value)),
        fmt::format("a.toml:2: optimizer.learning_rate is {}; expected a number, above 0 and at most 1000", value));
}

TEST(ConfigRefusals, WhatIsNoToml) {
  for (const char* text : {"[model]\nwidth = \n", "[model]\nwidth = 1\nwidth = 2\n", "[model]\nwidth 1\n",
                           "[model]\n\xFF\n", "[model]\n\"", "[model]\nwidth = 1\nwidth.x = 2\n"}) {
    const std::string sentence = of_text(text);
    EXPECT_TRUE(sentence.starts_with("a.toml:2: this is not valid TOML: ") ||
                sentence.starts_with("a.toml:3: this is not valid TOML: "))
        << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  }
}

TEST(ConfigRefusals, Flags) {
  EXPECT_EQ(of_flags({"model.width"}), "--set model.width: expected key=value, such as model.width=512");
  EXPECT_EQ(of_flags({"model.widht=1"}), "--set: there is no key model.widht; did you mean model.width?");
  EXPECT_EQ(of_flags({"modle.width=1"}), "--set: there is no key modle.width; did you mean model.width?");
  EXPECT_EQ(of_flags({"width=1"}), "--set: there is no key width; did you mean model.width?");
  EXPECT_EQ(of_flags({"=1"}).substr(0, 23), "--set: there is no key ");
  EXPECT_EQ(of_flags({"model.tied=yes"}), "--set: model.tied is \"yes\"; expected true or false");
  EXPECT_EQ(of_flags({"train.output=\xFF"}), "--set: the value of train.output is not UTF-8");
  for (const char* value : {"1x", "", "99999999999999999999", " 8", "0x8"})
    EXPECT_EQ(of_flags({fmt::format("model.width={}", value)}),
              fmt::format("--set: model.width is \"{}\"; expected an integer from 1 to 65536", value));
}

TEST(ConfigRefusals, ValuesThatDoNotFitEachOther) {
  EXPECT_EQ(of_flags({"data.train="}), "config: data.train is not given; expected the file of the training pairs");
  EXPECT_EQ(of_flags({"train.output="}), "config: train.output is not given; expected the folder for the model");
  EXPECT_EQ(of_flags({"model.heads=3"}), "config: model.width 256 is not a multiple of model.heads 3");
  EXPECT_EQ(of_flags({"model.positions=rotary", "model.width=12"}),
            "config: rotary positions need heads of even width; model.width / model.heads is 3");
  EXPECT_EQ(of_flags({"data.max_length=300"}), "config: data.max_length 300 is above model.max_length 256");
  EXPECT_EQ(of_flags({"data.source_column=2"}),
            "config: data.source_column and data.target_column are both 2; expected two columns");
  EXPECT_EQ(of_flags({"data.valid=", "data.valid_target=x"}), "config: data.valid_target is given without data.valid");
  EXPECT_EQ(of_flags({"data.hold_out=10"}),
            "config: data.hold_out is 10, and data.valid names a file; expected one of the two");
  EXPECT_EQ(of_flags({"data.valid=", "train.patience=3"}),
            "config: train.patience is 3, and there is no data.valid to judge by");
  EXPECT_EQ(of_flags({"task.kind=language_model", "task.stride=300"}),
            "config: task.stride is 300; expected at most data.max_length, 256");
  EXPECT_EQ(of_flags({"optimizer.schedule=paper", "optimizer.warmup=0"}),
            "config: the paper's schedule needs a warm-up; optimizer.warmup is 0");
}

}  // namespace
}  // namespace mh
