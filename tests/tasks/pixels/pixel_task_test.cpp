// Classes of pictures against formulas: losses, metrics, batches; data of every kind, and data that are broken.
#include "multihead/tasks/pixels/pixel_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "multihead/io/safetensors.h"
#include "multihead/tasks/pixels/pixel_model.h"
#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/image_classifier.h"
#include "tests/harness/refusal.h"
#include "tests/tasks/pixels/pictures.h"

namespace mh {
namespace {

class PixelClasses : public testing::Test {
 protected:
  PixelClasses() {
    write_pictures(folder_ / "train", 4);
    write_pictures(folder_ / "valid", 3, 100);
    setup_.task.kind = TaskKind::image_class;
    setup_.model = {.vocabulary = 0,
                    .width = 16,
                    .heads = 2,
                    .feed_forward = 24,
                    .encoder_layers = 2,
                    .middle = Middle::gelu,
                    .dropout = 0};
    setup_.data.train = folder_ / "train";
    setup_.data.valid = folder_ / "valid";
    setup_.data.examples_per_batch = 3;
    setup_.smoothing = 0.1F;
  }
  static void give_model(PixelTask& task) {
    task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
  }
  std::string saved(PixelTask& task, const std::string& name) const {
    const std::string folder = folder_ / name;
    std::filesystem::create_directories(folder);
    task.begin(folder);
    task.save(folder);
    return folder;
  }
  std::string refused(const TaskSetup& setup) const {
    return refusal_of([&] { PixelTask task(setup); }).sentence;
  }
  static std::string idx(const std::vector<int>& sizes, const std::string& bytes) {
    std::string out("\0\0\x08", 3);
    out += static_cast<char>(sizes.size());
    for (const int size : sizes) out += std::string("\0\0\0", 3) + static_cast<char>(size);
    return out + bytes;
  }
  TemporaryFolder folder_;
  TaskSetup setup_;
};

// Σ weight · smoothed -log p over the sum of weights, from the classifier's own probabilities.
TEST_F(PixelClasses, TheLossIsTheWeightedMeanOfTheFormula) {
  std::filesystem::remove(folder_ / "train/lower/3.png");
  setup_.data.examples_per_batch = 7;
  for (const ClassWeights weights : {ClassWeights::none, ClassWeights::balanced}) {
    setup_.task.class_weights = weights;
    PixelTask task(setup_);
    give_model(task);
    const ImageClassifier classifier = ImageClassifier::load(saved(task, weights == ClassWeights::none ? "a" : "b"));
    EXPECT_EQ(classifier.labels(), (std::vector<std::string>{"lower", "upper"}));
    double sum = 0, all = 0, nll = 0;
    for (int n = 0; n < 7; ++n) {
      const bool upper = n < 4;
      const Classification said = classifier(half_bright(upper, upper ? 2 * n + 1 : 2 * (n - 4)));
      const double weight = weights == ClassWeights::none ? 1 : upper ? 7.0 / 8 : 7.0 / 6;
      const double smooth = -(std::log(said.scores[0]) + std::log(said.scores[1])) / 2;
      sum += weight * (0.9 * -std::log(said.scores[upper]) + 0.1 * smooth);
      nll -= std::log(said.scores[upper]);
      all += weight;
    }
    Pass pass = Pass::inference();
    const CrossEntropy loss = task.loss(*task.batch({0, 0}), pass);
    EXPECT_NEAR(loss.loss.item({}), sum / all, 1e-5);
    EXPECT_NEAR(loss.nll.item({}), nll, 1e-5);
  }
}

TEST_F(PixelClasses, EveryPictureIsInOneBatchOfAnEpoch) {
  PixelTask task(setup_);
  EXPECT_EQ(task.batches(2), 6);
  std::multiset<float> seen, expected;
  for (const bool upper : {false, true})
    for (uint64_t n = 0; n < 4; ++n)
      expected.insert(task.form().pixels(half_bright(upper, 2 * n + upper), nullptr).data<float>()[0]);
  Position at;
  for (int64_t n = 0; n < task.batches(1); ++n, at = task.after(at)) {
    const auto batch = task.batch(at);
    const auto& given = dynamic_cast<const PixelsOfOneBatch&>(*batch);
    EXPECT_EQ(given.pixels.shape(), Shape({batch->tokens(), 3, 8, 8}));
    for (int64_t b = 0; b < batch->tokens(); ++b) seen.insert(given.pixels.data<float>()[b * 192]);
  }
  EXPECT_EQ(at, (Position{1, 0}));
  EXPECT_EQ(seen, expected);
}

TEST_F(PixelClasses, VariationsFollowFromSeedEpochAndExample) {
  setup_.data.shift = 2;
  setup_.data.colour_noise = 0.2;
  setup_.data.examples_per_batch = 8;
  const auto first = [](const PixelTask& task, int64_t epoch) {
    const auto batch = task.batch({epoch, 0});
    const auto& given = dynamic_cast<const PixelsOfOneBatch&>(*batch);
    return std::vector<float>(given.pixels.data<float>(), given.pixels.data<float>() + given.pixels.count());
  };
  PixelTask task(setup_), same(setup_);
  setup_.seed = 2;
  PixelTask other(setup_);
  EXPECT_EQ(first(task, 1), first(same, 1));
  EXPECT_NE(first(task, 0), first(task, 1));
  EXPECT_NE(first(task, 0), first(other, 0));
  EXPECT_EQ(task.digest(), other.digest());
}

TEST_F(PixelClasses, AValidationScoresTheLabelsThatTheFolderGives) {
  PixelTask task(setup_);
  give_model(task);
  const std::string folder = saved(task, "model");
  EXPECT_EQ(model_kind_of_folder(folder), "image_class");
  const ImageClassifier classifier = ImageClassifier::load(folder);
  std::vector<std::string> files;
  for (const std::string label : {"lower", "upper"})
    for (int n = 0; n < 3; ++n) files.push_back(folder_ / "valid/" + label + "/" + std::to_string(n) + ".png");
  const auto together = classifier(files);
  double nll = 0, right = 0;
  for (size_t n = 0; n < 6; ++n) {
    const Classification alone = classifier(read_image(files[n]));
    EXPECT_EQ(alone.scores, together[n].scores);
    nll -= std::log(alone.scores[n / 3]);
    right += alone.label == classifier.labels()[n / 3];
  }
  const Verdict verdict = task.validate({});
  EXPECT_EQ(verdict.metrics.front().first, "accuracy");
  EXPECT_NEAR(verdict.watched(), right / 6, 1e-12);
  EXPECT_NEAR(value_of(verdict.metrics, "loss"), nll / 6, 1e-5);
  const PixelModel model = PixelModel::load(folder);
  EXPECT_EQ(model.score(read_pixel_files(folder_ / "valid", {}, model.form())).metrics(), verdict.metrics);
  EXPECT_TRUE(refusal_of([&] { classifier(zeros({8, 8, 3})); }).says("expected u8"));
}

TEST_F(PixelClasses, TablesNameFilesAndLabels) {
  put_text(folder_ / "table.csv", "label,file\nup,train/upper/0.png\ndown,train/lower/0.png\nup,\nup,train/none.png\n");
  setup_.data.train = setup_.data.valid = folder_ / "table.csv";
  setup_.data.text = "file";
  setup_.data.label = "label";
  std::vector<std::string> said;
  setup_.events.on_message = [&](const std::string& sentence) { said.push_back(sentence); };
  const PixelTask task(setup_);
  EXPECT_EQ(task.facts().train, 2);
  EXPECT_EQ(task.labels().names(), (std::vector<std::string>{"down", "up"}));
  ASSERT_EQ(said.size(), 4U);
  EXPECT_THAT(said[0], testing::HasSubstr("(line 4): no file"));
  EXPECT_THAT(said[1], testing::AllOf(testing::HasSubstr("line 5"), testing::HasSubstr("none.png")));
}

TEST_F(PixelClasses, IdxFilesAreGreyPicturesOfTheirSize) {
  std::string bytes, labels;
  for (int n = 0; n < 4; ++n) {
    for (int i = 0; i < 8 * 12; ++i) bytes += static_cast<char>(n * 20 + i);
    labels += static_cast<char>(n % 2 + 3);
  }
  put_text(folder_ / "images", idx({4, 8, 12}, bytes));
  put_text(folder_ / "labels", idx({4}, labels));
  setup_.data.train = setup_.data.valid = folder_ / "images";
  setup_.data.train_target = setup_.data.valid_target = folder_ / "labels";
  PixelTask task(setup_);
  EXPECT_EQ(task.labels().names(), (std::vector<std::string>{"3", "4"}));
  give_model(task);
  EXPECT_THAT(task.facts().model, testing::HasSubstr("12 x 8 pixels in patches of 4 x 4"));
  const PixelModel model = PixelModel::load(saved(task, "idx"));
  EXPECT_EQ(model.form().shape().channels, 1);
  const auto& form = dynamic_cast<const ImageForm&>(model.form());
  EXPECT_EQ(form.preparation().height, 8);
  EXPECT_EQ(form.preparation().width, 12);
  EXPECT_EQ(ImageClassifier::load(folder_ / "idx")(half_bright(true, 0)).scores.size(), 2U);

  put_text(folder_ / "labels", idx({3}, "abc"));
  EXPECT_THAT(refused(setup_), testing::HasSubstr("expected a whole number for each of the 4 pictures"));
  put_text(folder_ / "images", idx({4}, "abcd"));
  EXPECT_THAT(refused(setup_), testing::HasSubstr("expected u8 (pictures, height, width)"));
}

TEST_F(PixelClasses, BrokenFilesAreCountedAndNamed) {
  put_text(folder_ / "train/lower/9.png", "no picture");
  std::vector<std::string> said;
  setup_.events.on_message = [&](const std::string& sentence) { said.push_back(sentence); };
  EXPECT_EQ(PixelTask(setup_).facts().train, 8);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], testing::AllOf(testing::HasSubstr("skipped 1 of 9"),
                                      testing::HasSubstr("train/lower/9.png': not a picture that is known")));
  setup_.data.max_broken = 0;
  EXPECT_THAT(refused(setup_), testing::HasSubstr("9.png"));
}

TEST_F(PixelClasses, BadDataGetOneSentence) {
  std::filesystem::create_directories(folder_ / "valid/sideways");
  put_text(folder_ / "valid/sideways/0.png", encode_png(half_bright(true, 0)));
  EXPECT_THAT(refused(setup_), testing::HasSubstr("the label 'sideways' does not occur in the training data"));
  setup_.data.valid.clear();
  std::filesystem::remove_all(folder_ / "train/lower");
  EXPECT_THAT(refused(setup_), testing::HasSubstr("every example has the label 'upper'; expected two labels or more"));
  std::filesystem::remove_all(folder_ / "train/upper");
  EXPECT_THAT(refused(setup_), testing::HasSubstr("holds no folder with a file that ends in .png"));
  std::filesystem::create_directories(folder_ / "train/upper");
  put_text(folder_ / "train/upper/0.jpg", "");
  EXPECT_THAT(refused(setup_), testing::HasSubstr("none of its 1 pictures can be read"));
}

TEST_F(PixelClasses, OddSizesNeedPatchesThatFit) {
  setup_.head.patch = 3;
  PixelTask task(setup_);
  EXPECT_EQ(refusal_of([&] { give_model(task); }).sentence,
            "config: model.patch 3 does not divide 8 x 8 pixels; expected a divisor, or another data.image_size");
  setup_.data.image_size = 6;
  PixelTask smaller(setup_);
  give_model(smaller);
  EXPECT_EQ(smaller.batch({0, 0})->tokens(), 3);
  EXPECT_THAT(smaller.facts().model, testing::HasSubstr("6 x 6 pixels in patches of 3 x 3"));
}

TEST_F(PixelClasses, FoldersOfHuggingFaceStartARun) {
  PixelTask first(setup_);
  give_model(first);
  setup_.from = saved(first, "from");
  setup_.data.image_size = 99;  // the folder decides
  PixelTask second(setup_);
  const auto store = std::make_shared<ParamStore>(ParamStoreOptions{.seed = 77});
  second.make_model(store);
  Pass pass = Pass::inference();
  EXPECT_EQ(second.loss(*second.batch({0, 0}), pass).loss.item({}),
            first.loss(*first.batch({0, 0}), pass).loss.item({}));
  std::filesystem::remove(folder_ / "from/preprocessor_config.json");
  EXPECT_THAT(refused(setup_), testing::HasSubstr("preprocessor_config.json"));
}

TEST_F(PixelClasses, OtherFoldersAreRefused) {
  const std::string vit = std::string(MH_TEST_DATA) + "/models/golden/families/vit_body",
                    bert = std::string(MH_TEST_DATA) + "/models/golden/families/bert_sequence";
  EXPECT_TRUE(
      refusal_of([&] { ImageClassifier::load(bert); }).says("is a text classifier; expected an image classifier"));
  EXPECT_TRUE(refusal_of([&] { ImageClassifier::load(vit); }).says("is a body"));
  setup_.from = bert;
  EXPECT_NE(refused(setup_), "no refusal");
}

}  // namespace
}  // namespace mh
