// Classification against formulas: losses, metrics, weights, batches; a run that learns; folders that load.
#include "multihead/tasks/classify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/classifier.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class Classifying : public testing::Test {
 protected:
  Classifying() {
    put_text(folder_ / "train.tsv",
             "good film\tpos\nbad film\tneg\na good one\tpos\nso bad\tneg\nfine and good\tpos\n");
    put_text(folder_ / "valid.tsv", "good\tpos\nbad bad\tneg\nfine film\tpos\n");
    setup_.task.kind = TaskKind::classify;
    setup_.model = {.vocabulary = 0,
                    .width = 16,
                    .heads = 2,
                    .feed_forward = 24,
                    .encoder_layers = 2,
                    .decoder_layers = 1,
                    .positions = ModelPositions::learned,
                    .dropout = 0,
                    .max_length = 8};
    setup_.tokenizer = {.kind = TokenizerKind::words, .min_count = 1, .lowercase = true};
    setup_.data.train = folder_ / "train.tsv";
    setup_.data.valid = folder_ / "valid.tsv";
    setup_.data.examples_per_batch = 2;
    setup_.smoothing = 0.1F;
  }
  static void give_model(ClassifyTask& task) {
    task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
  }
  std::string saved(const TaskSetup& setup, const std::string& name) const {
    ClassifyTask task(setup);
    give_model(task);
    const std::string folder = folder_ / name;
    std::filesystem::create_directories(folder);
    task.begin(folder);
    task.save(folder);
    return folder;
  }
  std::string refused(const TaskSetup& setup) const {
    return refusal_of([&] { ClassifyTask task(setup); }).sentence;
  }

  TemporaryFolder folder_;
  TaskSetup setup_;
};

// Σ over texts of weight · smoothed -log p, over the sum of weights, from the classifier's own probabilities.
TEST_F(Classifying, TheLossIsTheWeightedMeanOfTheFormula) {
  for (const ClassWeights weights : {ClassWeights::none, ClassWeights::balanced}) {
    setup_.task.class_weights = weights;
    setup_.data.examples_per_batch = 5;
    ClassifyTask task(setup_);
    give_model(task);
    const Classifier classifier = Classifier::load(saved(setup_, weights == ClassWeights::none ? "a" : "b"));
    const char* texts[] = {"good film", "bad film", "a good one", "so bad", "fine and good"};
    double sum = 0, all = 0, nll = 0;
    for (int n = 0; n < 5; ++n) {
      const Classification said = classifier(texts[n]);
      const size_t right = n % 2 == 0 ? 1 : 0;  // neg, pos
      const double weight = weights == ClassWeights::none ? 1 : right == 1 ? 5.0 / 6 : 5.0 / 4;
      const double smooth = -(std::log(said.scores[0]) + std::log(said.scores[1])) / 2;
      sum += weight * (0.9 * -std::log(said.scores[right]) + 0.1 * smooth);
      nll -= std::log(said.scores[right]);
      all += weight;
    }
    Pass pass = Pass::inference();
    const CrossEntropy loss = task.loss(*task.batch({0, 0}), pass);
    EXPECT_NEAR(loss.loss.item({}), sum / all, 1e-5);
    EXPECT_NEAR(loss.nll.item({}), nll, 1e-5);
  }
}

TEST_F(Classifying, EveryTextIsInOneBatchOfAnEpoch) {
  ClassifyTask task(setup_);
  EXPECT_EQ(task.batches(2), 6);
  std::multiset<int64_t> lengths;
  Position at;
  for (int64_t n = 0; n < task.batches(1); ++n, at = task.after(at)) {
    const auto batch = task.batch(at);
    EXPECT_LE(batch->tokens(), 2);
    const auto& texts = dynamic_cast<const TextsOfOneBatch&>(*batch).texts;
    for (int64_t b = 0; b < texts.at.count(); ++b)
      lengths.insert(texts.at.starts.data<int32_t>()[b + 1] - texts.at.starts.data<int32_t>()[b]);
  }
  EXPECT_EQ(at, (Position{1, 0}));
  EXPECT_EQ(lengths, (std::multiset<int64_t>{2, 2, 2, 3, 3}));
}

TEST_F(Classifying, AValidationScoresTheLabelsThatTheFolderGives) {
  ClassifyTask task(setup_);
  give_model(task);
  const Classifier classifier = Classifier::load(saved(setup_, "model"));
  EXPECT_EQ(classifier.labels(), (std::vector<std::string>{"neg", "pos"}));
  const std::vector<std::string> texts{"good", "bad bad", "fine film"};
  const auto together = classifier(texts);
  const size_t right[] = {1, 0, 1};
  double nll = 0;
  int correct = 0;
  for (size_t n = 0; n < 3; ++n) {
    const Classification alone = classifier(texts[n]);
    EXPECT_EQ(alone.scores, together[n].scores);  // bits: neighbours in a batch have no say
    EXPECT_NEAR(alone.scores[0] + alone.scores[1], 1, 1e-6);
    EXPECT_EQ(alone.score, std::max(alone.scores[0], alone.scores[1]));
    nll -= std::log(alone.scores[right[n]]);
    correct += alone.label == classifier.labels()[right[n]];
  }
  const Verdict verdict = task.validate({});
  EXPECT_EQ(verdict.metrics.front().first, "accuracy");
  EXPECT_NEAR(verdict.watched(), correct / 3.0, 1e-12);
  EXPECT_NEAR(value_of(verdict.metrics, "loss"), nll / 3, 1e-5);
  setup_.task.metric = "loss";
  ClassifyTask other(setup_);
  give_model(other);
  EXPECT_EQ(other.validate({}).metrics.front().first, "loss");
  EXPECT_FALSE(other.facts().watched.higher_is_better);

  LabelledModel folder = load_classifier(folder_ / "model");
  EXPECT_EQ(score_classes(folder, read_labelled(folder_ / "valid.tsv", setup_.data)).metrics(), verdict.metrics);
}

TEST_F(Classifying, MetricsAreThoseOfThePredictions) {
  const ClassScores scores{.loss = 0.5, .predictions = {0, 1, 1, 2}, .references = {0, 1, 2, 2}, .classes = 3};
  const Metrics m = scores.metrics();
  EXPECT_DOUBLE_EQ(value_of(m, "accuracy"), 0.75);
  EXPECT_DOUBLE_EQ(value_of(m, "macro_f1"), (1 + 2.0 / 3 + 2.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(value_of(m, "matthews"), (3 * 4 - (1 + 2 + 2)) / std::sqrt((16 - 6.0) * (16 - 6.0)));
  // More classes than a matrix has room for: what needs none is still measured.
  const Metrics many = ClassScores{.predictions = {99'999}, .references = {99'999}, .classes = 100'000}.metrics();
  EXPECT_EQ(many.size(), 2U);
  EXPECT_EQ(value_of(many, "accuracy"), 1);
}

TEST_F(Classifying, PairsHaveTypesAndNamesNameColumns) {
  put_text(folder_ / "pairs.csv", "id,premise,hypothesis,answer\n1,a b,a,yes\n2,a b,c,no\n3,\"b, c\",c,yes\n");
  setup_.data.train = folder_ / "pairs.csv";
  setup_.data.valid = folder_ / "pairs.csv";
  setup_.data.text = "premise";
  setup_.data.pair = "hypothesis";
  setup_.data.label = "answer";
  const Classifier classifier = Classifier::load(saved(setup_, "pairs"));
  EXPECT_TRUE(classifier.reads_pairs());
  EXPECT_NE(classifier("a b\tc").scores, classifier("a\tb c").scores);
  EXPECT_TRUE(refusal_of([&] { classifier("a b"); }).says("text 1 is not a pair"));
}

// The texts have 13 characters, a space among them; an s stands in them once.
TEST_F(Classifying, ReadsCharacters) {
  setup_.tokenizer = {.kind = TokenizerKind::characters, .min_count = 1};
  setup_.model.max_length = 16;
  EXPECT_EQ(ClassifyTask(setup_).facts().vocabulary, 5 + 13);
  setup_.tokenizer.min_count = 2;
  EXPECT_EQ(ClassifyTask(setup_).facts().vocabulary, 5 + 12);
  const Tokenizer plain = Tokenizer::load(saved(setup_, "plain") + "/tokenizer.json");
  EXPECT_EQ(plain.encode_input("so", {}).ids, (std::vector<int32_t>{1, plain.encode("o").at(0)}));
  setup_.recurrent.kind = ModelKind::bert;
  const Tokenizer wrapped = Tokenizer::load(saved(setup_, "bert") + "/tokenizer.json");
  EXPECT_EQ(wrapped.encode_input("so", {}).ids, (std::vector<int32_t>{2, 1, wrapped.encode("o").at(0), 3}));
}

TEST_F(Classifying, LongTextsAreCutAndEmptyOnesRead) {
  const Classifier classifier = Classifier::load(saved(setup_, "model"));
  EXPECT_TRUE(classifier("a a a a a a a a a").cut);
  EXPECT_EQ(classifier("a a a a a a a a good").scores, classifier("a a a a a a a a").scores);
  EXPECT_EQ(classifier("").scores.size(), 2U);
  EXPECT_EQ(classifier("").scores, classifier("unseen").scores);
  EXPECT_TRUE(refusal_of([&] { classifier("\xFF"); }).says("text 1 is not UTF-8"));
  EXPECT_TRUE(classifier(std::span<const std::string>()).empty());
}

TEST_F(Classifying, BadDataGetOneSentenceWithFileAndLine) {
  put_text(folder_ / "bad.tsv", "good\tpos\n\nfine\tgreat\n");
  TaskSetup other = setup_;
  other.data.valid = folder_ / "bad.tsv";
  EXPECT_EQ(refused(other),
            (folder_ / "bad.tsv") +
                ":3: the label 'great' does not occur in the training data; expected one of its 2: 'neg', 'pos'");
  put_text(folder_ / "bad.tsv", "good\tpos\nfine\tpos\n");
  other = setup_;
  other.data.train = folder_ / "bad.tsv";
  EXPECT_THAT(refused(other), testing::HasSubstr("every row has the label 'pos'"));
  put_text(folder_ / "bad.tsv", "");
  EXPECT_THAT(refused(other), testing::HasSubstr("bad.tsv: empty; expected texts with labels"));
  put_text(folder_ / "bad.tsv", " \tpos\ngood\t\n");
  EXPECT_THAT(refused(other),
              testing::AllOf(testing::HasSubstr("no text with a label is left"),
                             testing::HasSubstr("(line 1): an empty text"), testing::HasSubstr("(line 2): no label")));
}

TEST_F(Classifying, AnotherFolderIsRefused) {
  const std::string folder = saved(setup_, "model");
  EXPECT_EQ(model_kind_of_folder(folder), "classify");
  EXPECT_EQ(refusal_of([&] { load_classifier(folder_ / "none"); }).kind, ErrorKind::io);
  put_text(folder + "/tokenizer.json", train_bpe({"a b"}, {.vocabulary = 262}).json());
  EXPECT_TRUE(refusal_of([&] { load_classifier(folder); }).says("does not belong to"));
}

}  // namespace
}  // namespace mh
