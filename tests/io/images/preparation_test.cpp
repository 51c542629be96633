// preprocessor_config.json in the forms there are, and pictures prepared by hand.
#include "multihead/io/images/preparation.h"

#include <gtest/gtest.h>

#include "multihead/io/images/image_file.h"
#include "multihead/io/safetensors.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

const std::string kPrepared = std::string(MH_TEST_DATA) + "/io/images/golden/";

class Preparing : public testing::Test {
 protected:
  ImagePreparation of(const std::string& json) const {
    put_text(folder_ / "preprocessor_config.json", json);
    return read_preparation(folder_ / "preprocessor_config.json");
  }
  Refusal refused(const std::string& json) const {
    return refusal_of([&] { of(json); });
  }
  static Tensor rows(int64_t height, int64_t width) {
    const Tensor out = empty({height, width, 3}, DType::u8);
    for (int64_t n = 0; n < out.count(); ++n) out.data<uint8_t>()[n] = static_cast<uint8_t>(1 + n / (3 * width));
    return out;
  }
  TemporaryFolder folder_;
};

TEST_F(Preparing, SizesHaveThreeForms) {
  EXPECT_EQ(of(R"({"size": 40})").height, 40);
  EXPECT_EQ(of(R"({"size": 40})").width, 40);
  EXPECT_EQ(of(R"({"size": {"height": 3, "width": 5}})").width, 5);
  EXPECT_EQ(of(R"({"size": {"shortest_edge": 9}})").shortest_edge, 9);
  const ImagePreparation clip =
      of(R"({"feature_extractor_type": "CLIPFeatureExtractor", "size": 30, "crop_size": 28})");
  EXPECT_EQ(clip.shortest_edge, 30);
  EXPECT_EQ(clip.crop_height, 28);
  EXPECT_EQ(clip.resample, Resample::bicubic);
  EXPECT_EQ(fitted(rows(7, 21), of(R"({"size": {"shortest_edge": 9}})")).shape(), Shape({9, 27, 3}));
  EXPECT_EQ(fitted(rows(8, 7), of(R"({"size": {"shortest_edge": 9}})")).shape(),
            Shape({10, 9, 3}));  // 9 · 8 / 7 = 10.3
  EXPECT_EQ(fitted(rows(8, 7), of(R"({"do_resize": false})")).shape(), Shape({8, 7, 3}));
}

TEST_F(Preparing, WhatIsLeftOutIsTheDefaultOfTheProcessor) {
  const ImagePreparation vit = of("{}"), deit = of(R"({"image_processor_type": "DeiTImageProcessor"})");
  EXPECT_EQ(vit.height, 224);
  EXPECT_EQ(vit.crop_height, 0);
  EXPECT_EQ(vit.resample, Resample::bilinear);
  EXPECT_EQ(deit.height, 256);
  EXPECT_EQ(deit.crop_height, 224);
  EXPECT_EQ(deit.resample, Resample::bicubic);
}

TEST_F(Preparing, TheMiddleIsCutOrFramed) {
  const auto first_column = [](const Tensor& image) {
    std::vector<int> out;
    for (int64_t y = 0; y < image.size(0); ++y) out.push_back(image.data<uint8_t>()[y * image.size(1) * 3]);
    return out;
  };
  ImagePreparation p{.crop_height = 2, .crop_width = 1};
  EXPECT_EQ(first_column(fitted(rows(5, 1), p)), (std::vector<int>{2, 3}));
  p.crop_height = 4;
  EXPECT_EQ(first_column(fitted(rows(3, 1), p)), (std::vector<int>{0, 1, 2, 3}));
  p.crop_height = 5;
  EXPECT_EQ(first_column(fitted(rows(3, 1), p)), (std::vector<int>{0, 1, 2, 3, 0}));
}

TEST_F(Preparing, NumbersAreThoseOfTheFormula) {
  const ImagePreparation p =
      of(R"({"do_resize": false, "rescale_factor": 0.01, "image_mean": [0.1, 0.2, 0.3], "image_std": [1, 2, 4]})");
  const Tensor image = read_image(kPrepared + "rgb.png"), out = normalised(fitted(image, p), p);
  EXPECT_EQ(out.shape(), Shape({3, 17, 23}));
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t n = 0; n < 17 * 23; ++n)
      EXPECT_NEAR(out.data<float>()[c * 17 * 23 + n],
                  (image.data<uint8_t>()[n * 3 + c] * 0.01 - 0.1 * static_cast<double>(c + 1)) / (1 << c), 1e-6);
  const ImagePreparation plain = of(R"({"do_resize": false, "do_rescale": false, "do_normalize": false})");
  EXPECT_EQ(normalised(fitted(image, plain), plain).data<float>()[0], static_cast<float>(image.data<uint8_t>()[0]));
}

TEST_F(Preparing, GreyIsThatOfPillow) {
  const ImagePreparation p{.mean = {0}, .deviation = {1}};
  const Tensor out = fitted(read_image(kPrepared + "rgb.png"), p);
  const Tensor expected = read_safetensors(kPrepared + "golden.safetensors").tensors.at("grey of rgb");
  ASSERT_EQ(out.count(), expected.count());
  for (int64_t n = 0; n < out.count(); ++n) EXPECT_EQ(out.data<uint8_t>()[n], expected.data<uint8_t>()[n]);
  EXPECT_TRUE(refusal_of([&] { fitted(out, ImagePreparation{}); }).says("a grey picture"));
}

TEST_F(Preparing, WhatIsWrittenIsRead) {
  for (const ImagePreparation& p :
       {ImagePreparation{
            .height = 28, .width = 40, .resample = Resample::bicubic, .mean = {0.1307F}, .deviation = {0.3F}},
        ImagePreparation{.shortest_edge = 30, .crop_height = 28, .crop_width = 27}}) {
    const ImagePreparation back = of(preparation_json(p));
    EXPECT_EQ(back.height, p.height);
    EXPECT_EQ(back.width, p.width);
    EXPECT_EQ(back.shortest_edge, p.shortest_edge);
    EXPECT_EQ(back.crop_height, p.crop_height);
    EXPECT_EQ(back.crop_width, p.crop_width);
    EXPECT_EQ(back.resample, p.resample);
    EXPECT_EQ(back.rescale, p.rescale);
    EXPECT_EQ(back.mean, p.mean);
    EXPECT_EQ(back.deviation, p.deviation);
  }
}

TEST_F(Preparing, OtherValuesAreRefusedByKey) {
  EXPECT_TRUE(refused("[").says("preprocessor_config.json': not a JSON object"));
  EXPECT_TRUE(refused(R"({"size": 0})").says("size is '0'; expected sides from 1"));
  EXPECT_TRUE(
      refused(R"({"size": {"longest_edge": 3}})").says("expected a number, {height, width} or {shortest_edge}"));
  EXPECT_TRUE(refused(R"({"resample": 5})").says("resample is '5'"));
  EXPECT_TRUE(refused(R"({"do_resize": 1})").says("expected true or false"));
  EXPECT_TRUE(refused(R"({"image_std": [1, 0, 1]})").says("expected 1 or 3 numbers above 0"));
  EXPECT_TRUE(refused(R"({"image_mean": [0.5]})").says("image_mean has 1 numbers, image_std 3"));
  EXPECT_TRUE(refused(R"({"do_center_crop": true, "crop_size": "big"})").says("crop_size is"));
}

}  // namespace
}  // namespace mh
