// Several labels of a text, and numbers: cells, losses, metrics, and folders that say what their scores mean.
#include "multihead/tasks/data/text_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "multihead/tasks/classify.h"
#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/classifier.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class Targets : public testing::Test {
 protected:
  Targets() {
    put_text(folder_ / "sets.tsv", "good film\tglad, film\nbad film\tfilm\nso good\tglad\nnothing\t,\n");
    put_text(folder_ / "numbers.tsv", "good film\t4.5\nbad film\t-1\nso good\t3\n");
    setup_.task.kind = TaskKind::classify;
    setup_.model = {.vocabulary = 0,
                    .width = 16,
                    .heads = 2,
                    .feed_forward = 24,
                    .encoder_layers = 1,
                    .decoder_layers = 1,
                    .middle = Middle::gelu,
                    .positions = ModelPositions::learned,
                    .dropout = 0,
                    .max_length = 8};
    setup_.tokenizer = {.kind = TokenizerKind::words, .min_count = 1, .lowercase = true};
    setup_.data.examples_per_batch = 8;
    setup_.smoothing = 0.1F;
  }
  TaskSetup setup_for(LabelKind kind, ModelKind model = ModelKind::transformer) const {
    TaskSetup out = setup_;
    out.task.labels = kind;
    out.recurrent.kind = model;
    out.data.train = out.data.valid = folder_ / (kind == LabelKind::several ? "sets.tsv" : "numbers.tsv");
    return out;
  }
  std::string saved(ClassifyTask& task, const std::string& name) const {
    task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
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

TEST_F(Targets, CellsAreSplitAndTrimmed) {
  const LabelledTexts texts = read_labelled(folder_ / "sets.tsv", setup_.data);
  const LabelReading reading{.kind = LabelKind::several};
  const Labels labels = labels_of(texts, reading);
  EXPECT_EQ(labels.names(), (std::vector<std::string>{"film", "glad"}));
  const TextTargets all = targets_of(texts, labels, reading);
  EXPECT_EQ(all.values, (std::vector<float>{1, 1, 1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(all.size(), 4);
  const int64_t some[] = {2, 0};
  EXPECT_EQ(all.of(some).values, (std::vector<float>{0, 1, 1, 1}));
  const LabelReading slash{.kind = LabelKind::several, .separator = "; "};
  EXPECT_EQ(labels_of({.name = "x", .rows = {{.label = "a; b, c;d"}}}, slash).names(),
            (std::vector<std::string>{"a", "b, c;d"}));
}

// Against the probabilities that the folder's classifier gives, of our model and of a family.
TEST_F(Targets, SeveralLabelsHaveTheMeanBinaryCrossEntropy) {
  for (const ModelKind model : {ModelKind::transformer, ModelKind::bert}) {
    ClassifyTask task(setup_for(LabelKind::several, model));
    const std::string folder = saved(task, model == ModelKind::bert ? "bert" : "own");
    const Classifier classifier = Classifier::load(folder);
    const std::vector<std::string> texts{"good film", "bad film", "so good", "nothing"};
    const int right[4][2] = {{1, 1}, {1, 0}, {0, 1}, {0, 0}};
    double loss = 0, plain = 0;
    int exact = 0;
    for (size_t n = 0; n < 4; ++n) {
      const Classification said = classifier(texts[n]);
      bool same = true;
      for (size_t c = 0; c < 2; ++c) {
        const double p = said.scores[c], t = right[n][c], smooth = 0.9 * t + 0.05;
        loss -= (smooth * std::log(p) + (1 - smooth) * std::log(1 - p)) / 8;
        plain -= (t * std::log(p) + (1 - t) * std::log(1 - p)) / 8;
        same = same && (p > 0.5) == (t == 1);
      }
      exact += same;
    }
    Pass pass = Pass::inference();
    EXPECT_NEAR(task.loss(*task.batch({0, 0}), pass).loss.item({}), loss, 1e-5);
    const Verdict verdict = task.validate({});
    EXPECT_EQ(verdict.metrics.front().first, "micro_f1");
    EXPECT_EQ(task.facts().watched.metric, "micro_f1");
    EXPECT_NEAR(value_of(verdict.metrics, "loss"), plain, 1e-5);
    EXPECT_DOUBLE_EQ(value_of(verdict.metrics, "exact_match"), exact / 4.0);
    LabelledModel loaded = load_classifier(folder);
    EXPECT_EQ(loaded.model.labels(), LabelKind::several);
    EXPECT_EQ(score_classes(loaded, read_labelled(folder_ / "sets.tsv", setup_.data)).metrics(), verdict.metrics);
  }
  EXPECT_EQ(nlohmann::json::parse(text_of(folder_ / "bert/config.json"))["problem_type"], "multi_label_classification");
}

TEST_F(Targets, NumbersHaveTheMeanSquaredError) {
  for (const ModelKind model : {ModelKind::transformer, ModelKind::bert}) {
    ClassifyTask task(setup_for(LabelKind::number, model));
    const std::string folder = saved(task, model == ModelKind::bert ? "bert" : "own");
    const Classifier classifier = Classifier::load(folder);
    const std::vector<std::string> texts{"good film", "bad film", "so good"};
    const double right[] = {4.5, -1, 3};
    double squares = 0, distances = 0;
    for (size_t n = 0; n < 3; ++n) {
      const Classification said = classifier(texts[n]);
      EXPECT_EQ(said.scores.size(), 1U);
      squares += std::pow(said.score - right[n], 2) / 3;
      distances += std::abs(said.score - right[n]) / 3;
    }
    Pass pass = Pass::inference();
    EXPECT_NEAR(task.loss(*task.batch({0, 0}), pass).loss.item({}), squares, 1e-4);
    const Verdict verdict = task.validate({});
    EXPECT_EQ(task.facts().watched.metric, "pearson");
    EXPECT_TRUE(task.facts().watched.higher_is_better);
    EXPECT_NEAR(value_of(verdict.metrics, "loss"), squares, 1e-4);
    EXPECT_NEAR(value_of(verdict.metrics, "mean_absolute_error"), distances, 1e-5);
    LabelledModel loaded = load_classifier(folder);
    EXPECT_EQ(loaded.model.labels(), LabelKind::number);
    EXPECT_EQ(score_classes(loaded, read_labelled(folder_ / "numbers.tsv", setup_.data)).metrics(), verdict.metrics);
  }
  EXPECT_EQ(nlohmann::json::parse(text_of(folder_ / "bert/config.json"))["problem_type"], "regression");
}

TEST_F(Targets, BadCellsAndSettingsGetOneSentence) {
  TaskSetup numbers = setup_for(LabelKind::number), sets = setup_for(LabelKind::several);
  for (const char* bad : {"4,5", "nan", "inf", "x", "1e99"}) {
    put_text(folder_ / "bad.tsv", fmt::format("good\t1\nfilm\t{}\n", bad));
    numbers.data.train = folder_ / "bad.tsv";
    EXPECT_EQ(refused(numbers),
              fmt::format("{}:2: the label '{}' is no number; expected one such as 3.5", folder_ / "bad.tsv", bad));
  }
  put_text(folder_ / "bad.tsv", "good\tglad,sad\n");
  sets.data.valid = folder_ / "bad.tsv";
  EXPECT_THAT(refused(sets), testing::HasSubstr("bad.tsv:1: the label 'sad' does not occur in the training data"));
  put_text(folder_ / "bad.tsv", "good\t,\n");
  sets.data.train = folder_ / "bad.tsv";
  EXPECT_THAT(refused(sets), testing::HasSubstr("no row has a label"));
  const auto checked = [](const TaskSetup& setup) {
    return refusal_of([&] { classify_type().check(setup); }).sentence;
  };
  sets.task.metric = "pearson";
  EXPECT_EQ(checked(sets),
            "config: task.metric is \"pearson\"; with task.labels \"several\" expected one of micro_f1, "
            "macro_f1, exact_match, loss");
  numbers.task.class_weights = ClassWeights::balanced;
  EXPECT_THAT(checked(numbers), testing::HasSubstr("task.class_weights is \"balanced\", and task.labels \"number\""));
}

}  // namespace
}  // namespace mh
