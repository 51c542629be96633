// Every key of the configuration reaches what it names: changed alone, it changes that in a whole run.
#include "tests/train/config_reach.h"

namespace mh {

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
      {"task.stride",
       {.value = int64_t{4},
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.loss(5), before.loss(5));  // learned as before, scored otherwise
              EXPECT_NE(now.validations.at(0).value("loss"), before.validations.at(0).value("loss"));
            },
        .prepare = text}},
      {"task.metric",
       {.value = std::string("loss"),
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(before.validations.at(0).watched.metric, "accuracy");
              EXPECT_EQ(now.validations.at(0).watched.metric, "loss");
            },
        .prepare = labelled()}},
      {"task.class_weights", {.value = std::string("balanced"), .expect = another_function, .prepare = labelled()}},
      {"task.labels",
       {.value = std::string("several"),
        .expect =
            [](const Seen& before, const Seen& now) {
              EXPECT_EQ(now.start.parameters, before.start.parameters);
              EXPECT_EQ(before.validations.at(0).watched.metric, "accuracy");
              EXPECT_EQ(now.validations.at(0).watched.metric, "micro_f1");
            },
        .prepare = labelled()}},
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
      {"model.pooling", {.value = std::string("first"), .expect = another_function, .prepare = labelled()}},
      {"model.embedding_dropout", {.value = 0.7, .expect = another_function, .prepare = labelled()}},
      {"model.classifier_dropout", {.value = 0.7, .expect = another_function, .prepare = labelled()}},
      {"model.patch",
       {.value = int64_t{2},
        // 12 rows of positions more, and 3 · (16 - 4) numbers fewer that the patches' matrix reads
        .expect = more_parameters(12 * 16 - 3 * (16 - 4) * 16),
        .prepare = [this](TrainConfig& c) { pictured(c); }}},
      {"model.from",
       {.value = first.train.output,
        .expect = [](const Seen& before, const Seen& now) { EXPECT_LT(now.loss(0), before.loss(0)); }}},
      {"model.kind", {.value = std::string("gru"), .expect = fewer_parameters, .prepare = lstm}},
      {"model.attention",
       {.value = std::string("additive"), .expect = more_parameters(4 * 12 * 12 + 12 * 12 + 12), .prepare = lstm}},
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
  const auto words = [](TrainConfig& c) { c.tokenizer.kind = TokenizerKind::words; };
  return {
      {"tokenizer.kind",
       {.value = std::string("words"),
        .expect = [](const Seen&,
                     const Seen& now) { EXPECT_EQ(now.start.data.vocabulary, 4 + 8 + 8); }}},  // digits, words
      {"tokenizer.min_count",
       {.value = int64_t{1000},
        .expect = [](const Seen&, const Seen& now) { EXPECT_EQ(now.start.data.vocabulary, 4); },
        .prepare = words}},
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

}  // namespace mh
