// Recordings as pixels: how they are varied, and classes of them, against formulas.
#include "multihead/tasks/pixels/sound_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/tasks/pixels/pixel_model.h"
#include "multihead/tasks/pixels/pixel_task.h"
#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/image_classifier.h"
#include "multihead/tasks/verbs/sound_classifier.h"
#include "tests/harness/refusal.h"
#include "tests/tasks/pixels/tones.h"

namespace mh {
namespace {

constexpr SoundPreparation kFrames{.mels = 6, .frames = 10};

TEST(SoundForm, VariedFramesAreThoseOfTheFormula) {
  const Tensor v = empty({1, 10, 6});
  for (int64_t n = 0; n < v.count(); ++n) v.data<float>()[n] = static_cast<float>(n + 1);
  const SoundForm form(kFrames, {.shift = 3, .time_mask = 4, .mel_mask = 2}, 2);
  int64_t hidden = 0;
  for (uint64_t n = 0; n < 20; ++n) {
    Random random(9, n), same(9, n);
    const Tensor x = form.pixels(v, &random);
    const int64_t shift = same.below(7) - 3;
    const int64_t long_t = same.below(5), first_t = same.below(10 - long_t + 1);
    const int64_t long_m = same.below(3), first_m = same.below(6 - long_m + 1);
    for (int64_t t = 0; t < 10; ++t)
      for (int64_t m = 0; m < 6; ++m) {
        const bool masked = (t >= first_t && t < first_t + long_t) || (m >= first_m && m < first_m + long_m);
        const int64_t from = t + shift;
        hidden += masked;
        ASSERT_EQ(x.data<float>()[t * 6 + m],
                  masked || from < 0 || from > 9 ? 0 : static_cast<float>(from * 6 + m + 1));
      }
  }
  EXPECT_GT(hidden, 0);
  const Tensor plain = form.pixels(v, nullptr);
  EXPECT_EQ(plain.data<float>()[17], 18);
}

class SpokenClasses : public testing::Test {
 protected:
  SpokenClasses() {
    write_tones(folder_ / "train", 4);
    setup_.task.kind = TaskKind::speech_class;
    setup_.model = {.vocabulary = 0,
                    .width = 16,
                    .heads = 2,
                    .feed_forward = 24,
                    .encoder_layers = 1,
                    .middle = Middle::gelu,
                    .dropout = 0};
    setup_.data.train = setup_.data.valid = folder_ / "train";
    setup_.data.examples_per_batch = 8;
    setup_.data.frames = 12;
  }
  std::string saved() const {
    PixelTask task(setup_);
    task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
    task.begin(folder_.path());
    task.save(folder_.path());
    return folder_.path();
  }
  TemporaryFolder folder_;
  TaskSetup setup_;
};

TEST_F(SpokenClasses, TheLossIsTheMeanOfTheFormula) {
  const SoundClassifier classifier = SoundClassifier::load(saved());
  EXPECT_EQ(model_kind_of_folder(folder_.path()), "speech_class");
  EXPECT_EQ(classifier.labels(), (std::vector<std::string>{"high", "low"}));
  PixelTask task(setup_);
  task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{.seed = 5}));
  EXPECT_THAT(task.facts().model, testing::HasSubstr("40 x 12 pixels in patches of 40 x 4"));
  double nll = 0;
  for (int n = 0; n < 8; ++n) {
    const std::string file = folder_ / "train/" + (n < 4 ? "high/" : "low/") + std::to_string(n % 4) + ".wav";
    const Classification said = classifier(read_wav(file));
    EXPECT_EQ(said.scores, classifier(std::vector<std::string>{file}).front().scores);
    nll -= std::log(said.scores[n / 4]);
  }
  Pass pass = Pass::inference();
  EXPECT_NEAR(task.loss(*task.batch({0, 0}), pass).nll.item({}), nll, 1e-4);
  EXPECT_NEAR(value_of(task.validate({}).metrics, "loss"), nll / 8, 1e-5);
}

TEST_F(SpokenClasses, OtherRatesAndCutFilesAreRefusedByName) {
  const SoundClassifier classifier = SoundClassifier::load(saved());
  put_text(folder_ / "other.wav", encode_wav({.rate = 16000, .samples = std::vector<float>(3000)}));
  EXPECT_THAT(refusal_of([&] { classifier(std::vector<std::string>{folder_ / "other.wav"}); }).sentence,
              testing::HasSubstr("other.wav': recorded with 16000 samples a second; expected 8000"));
  put_text(folder_ / "train/low/9.wav", text_of(folder_ / "train/low/0.wav").substr(0, 500));
  std::vector<std::string> said;
  setup_.events.on_message = [&](const std::string& sentence) { said.push_back(sentence); };
  EXPECT_EQ(PixelTask(setup_).facts().train, 8);
  ASSERT_FALSE(said.empty());
  EXPECT_THAT(said[0], testing::HasSubstr("9.wav': it ends early"));
}

TEST_F(SpokenClasses, ModelsOfPicturesAndOfSoundsAreToldApart) {
  saved();
  EXPECT_TRUE(
      refusal_of([&] { ImageClassifier::load(folder_.path()); }).says("its model reads recordings; expected pictures"));
  setup_.task.kind = TaskKind::image_class;
  setup_.from = folder_.path();
  EXPECT_TRUE(refusal_of([&] { PixelTask task(setup_); }).says("reads recordings; expected a model of image_class"));
  setup_.task.kind = TaskKind::speech_class;
  setup_.from.clear();
  setup_.data.frames = 10;
  PixelTask task(setup_);
  EXPECT_TRUE(refusal_of([&] {
                task.make_model(std::make_shared<ParamStore>(ParamStoreOptions{}));
              }).says("model.patch 4 does not divide 40 x 10 pixels; expected a divisor, or another data.frames"));
}

}  // namespace
}  // namespace mh
