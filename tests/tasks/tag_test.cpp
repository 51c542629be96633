// Tagging against formulas: which tokens count, the loss, entity F1, and the places of entities in a text.
#include "multihead/tasks/tag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/metrics/entities.h"
#include "multihead/ops/rows/softmax.h"
#include "multihead/tasks/verbs/tagger.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using Strings = std::vector<std::string>;

class TaggingSentences : public testing::Test {
 protected:
  TaggingSentences() {
    put_text(folder_ / "train.conll",
             "Ada B-PER\nLovelace I-PER\nlives O\n\nin O\nYork B-LOC\n\nAda B-PER\nin O\nYork B-LOC\n. O\n");
    put_text(folder_ / "valid.conll", "Ada B-PER\nlives O\nin O\nYork B-LOC\n");
    setup_.task.kind = TaskKind::tag;
    setup_.model = {.vocabulary = 0,
                    .width = 16,
                    .heads = 2,
                    .feed_forward = 24,
                    .encoder_layers = 1,
                    .decoder_layers = 1,
                    .dropout = 0,
                    .max_length = 6};
    setup_.tokenizer = {.kind = TokenizerKind::words, .min_count = 1, .lowercase = true};
    setup_.data.train = folder_ / "train.conll";
    setup_.data.valid = folder_ / "valid.conll";
    setup_.data.examples_per_batch = 3;
  }
  std::string saved(const TaskSetup& setup) const {
    TagTask task(setup);
    task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
    std::filesystem::create_directories(folder_ / "model");
    task.begin(folder_ / "model");
    task.save(folder_ / "model");
    return folder_ / "model";
  }
  TemporaryFolder folder_;
  TaskSetup setup_;
};

TEST_F(TaggingSentences, TheFirstTokenOfAWordStandsForIt) {
  const Tokenizer t = train_bpe({"abc abc abc"}, {.vocabulary = 262});
  const Strings words{"abc", "xyz", "abc"};
  const WordTokens all = encode_words(t, words, 100);
  ASSERT_EQ(all.first.size(), 3U);
  int64_t at = 0;
  for (size_t n = 0; n < 3; ++n) {
    EXPECT_EQ(all.first[n], at);
    for (const int32_t id : t.encode(words[n])) EXPECT_EQ(all.ids[static_cast<size_t>(at++)], id);
  }
  EXPECT_EQ(at, static_cast<int64_t>(all.ids.size()));
  EXPECT_EQ(encode_words(t, words, all.first[2]).first.size(), 2U);
  EXPECT_EQ(encode_words(t, words, 1).ids.size(), 1U);  // of a word longer than all, its beginning
}

TEST_F(TaggingSentences, TheLossIsTheMeanOverWords) {
  saved(setup_);
  TagTask task(setup_);
  task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
  const LabelledModel model = load_tagger_model(folder_ / "model");
  EXPECT_EQ(model.labels.names(), (Strings{"B-LOC", "B-PER", "I-PER", "O"}));
  const std::vector<std::pair<Strings, std::vector<int>>> sentences{
      {{"Ada", "Lovelace", "lives"}, {1, 2, 3}}, {{"in", "York"}, {3, 0}}, {{"Ada", "in", "York", "."}, {1, 3, 0, 3}}};
  double nats = 0;
  for (const auto& [words, tags] : sentences) {
    Pass pass = Pass::inference();
    const Tensor p = softmax(model.model.logits(token_batch({encode_words(model.tokenizer, words, 6).ids}), {}, pass));
    for (size_t n = 0; n < words.size(); ++n) nats -= std::log(p.item({static_cast<int64_t>(n), tags[n]}));
  }
  const auto batch = task.batch({0, 0});
  EXPECT_EQ(batch->tokens(), 9);
  Pass pass = Pass::inference();
  EXPECT_NEAR(task.loss(*batch, pass).loss.item({}), nats / 9, 1e-5);
  EXPECT_EQ(task.batches(1), 1);
}

TEST_F(TaggingSentences, AValidationIsTheEntityScoreOfWhatTheTaggerSays) {
  TagTask task(setup_);
  task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
  const Tagger tagger = Tagger::load(saved(setup_));
  const Tagging said = tagger("Ada lives in York");
  const EntityScores scores = entity_scores({said.tags}, {{"B-PER", "O", "O", "B-LOC"}});
  const Verdict verdict = task.validate({});
  EXPECT_EQ(verdict.metrics.front().first, "f1");
  EXPECT_DOUBLE_EQ(verdict.watched(), scores.f1);
  LabelledModel model = load_tagger_model(folder_ / "model");
  EXPECT_EQ(score_tags(model, read_conll(folder_ / "valid.conll", {})).metrics(), verdict.metrics);
}

TEST_F(TaggingSentences, EntitiesHaveTheirPlacesInTheText) {
  const Tagger tagger = Tagger::load(saved(setup_));
  const std::string text = "  \u00C4da, in York!";
  const Tagging said = tagger(text);
  EXPECT_EQ(said.words, (Strings{"\u00C4da", ",", "in", "York", "!"}));
  const std::vector<Entity> wanted = entities(said.tags);
  ASSERT_EQ(said.entities.size(), wanted.size());
  const size_t begins[] = {2, 6, 8, 11, 15};
  for (size_t n = 0; n < wanted.size(); ++n) {
    EXPECT_EQ(said.entities[n].label, wanted[n].type);
    EXPECT_EQ(said.entities[n].begin, begins[wanted[n].first]);
    EXPECT_EQ(said.entities[n].end, begins[wanted[n].last] + said.words[static_cast<size_t>(wanted[n].last)].size());
    EXPECT_GT(said.entities[n].score, 0.25);
  }
  const std::vector<std::string> texts{"", "Ada in York and so on and on", text};
  const std::vector<Tagging> many = tagger(texts);
  EXPECT_TRUE(many[0].words.empty());
  EXPECT_TRUE(many[1].cut);
  EXPECT_EQ(many[1].tags.back(), "O");
  EXPECT_EQ(many[2].tags, said.tags);
}

TEST_F(TaggingSentences, BadDataGetOneSentenceWithFileAndLine) {
  const auto refused = [&](const std::string& text) {
    put_text(folder_ / "valid.conll", text);
    return refusal_of([&] { TagTask task(setup_); }).sentence;
  };
  EXPECT_THAT(refused("Ada B-PER\nin O\nYork B-CITY\n"),
              testing::HasSubstr("valid.conll:3: the label 'B-CITY' does not occur"));
  setup_.data.label = "tag";
  EXPECT_THAT(refused("a O\n"), testing::HasSubstr("data.label is \"tag\"; columns of CoNLL have numbers"));
}

}  // namespace
}  // namespace mh
