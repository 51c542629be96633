// Pictures against what Pillow reads and resizes them to; files that are broken, cut and mislabelled.
#include "multihead/io/images/image_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <span>

#include "multihead/io/images/resize.h"
#include "multihead/io/safetensors.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

const std::string kPictures = std::string(MH_TEST_DATA) + "/io/images/golden/";

std::vector<int> bytes_of(const Tensor& image) {
  const Tensor dense = image.contiguous();
  return {dense.data<uint8_t>(), dense.data<uint8_t>() + dense.count()};
}

Refusal decoding(const std::string& bytes) {
  return refusal_of([&] { decode_image(std::as_bytes(std::span(bytes)), "it.png"); });
}

TEST(ImageFile, PicturesAreThoseOfPillow) {
  const Safetensors golden = read_safetensors(kPictures + "golden.safetensors");
  int seen = 0;
  for (const auto& [name, expected] : golden.tensors) {
    if (!std::filesystem::exists(kPictures + name)) continue;
    ++seen;
    const Tensor image = read_image(kPictures + name);
    EXPECT_EQ(image.shape(), expected.shape()) << name;
    EXPECT_EQ(bytes_of(image), bytes_of(expected)) << name;
  }
  EXPECT_EQ(seen, 10);
}

TEST(ImageFile, ResizedPicturesAreThoseOfPillow) {
  const Safetensors golden = read_safetensors(kPictures + "golden.safetensors");
  const Tensor image = read_image(kPictures + "rgb.png");
  int seen = 0;
  for (const auto& [name, expected] : golden.tensors) {
    if (!name.starts_with("resized ")) continue;
    ++seen;
    const auto filter = static_cast<Resample>(name[8] - '0');
    EXPECT_EQ(bytes_of(resize(image, expected.size(0), expected.size(1), filter)), bytes_of(expected)) << name;
  }
  EXPECT_EQ(seen, 24);
  EXPECT_TRUE(refusal_of([&] { resize(image, 0, 3, Resample::bilinear); }).says("3 x 0 pixels; expected 1 to"));
  EXPECT_TRUE(refusal_of([&] { resize(zeros({2, 2, 3}), 3, 3, Resample::bilinear); }).says("expected u8"));
}

TEST(ImageFile, WhatIsWrittenIsRead) {
  for (const int64_t channels : {1, 3}) {
    const Tensor image = empty({5, 7, channels}, DType::u8);
    for (int64_t n = 0; n < image.count(); ++n) image.data<uint8_t>()[n] = static_cast<uint8_t>(n * 37);
    const std::string png = encode_png(image);
    const std::vector<int> read = bytes_of(decode_image(std::as_bytes(std::span(png)), "it"));
    ASSERT_EQ(read.size(), 105U);
    for (size_t n = 0; n < read.size(); ++n) EXPECT_EQ(read[n], image.data<uint8_t>()[channels == 3 ? n : n / 3]);
  }
  EXPECT_TRUE(refusal_of([] { encode_png(zeros({2, 2, 3})); }).says("expected u8 (height, width, 3)"));
}

TEST(ImageFile, PpmHasCommentsAndWideValues) {
  const std::string text = std::string("P5 # two\n2\t1\n#deep\n1000\n") + std::string("\x03\xE8\x00\x02", 4);
  EXPECT_EQ(bytes_of(decode_image(std::as_bytes(std::span(text)), "it")), (std::vector<int>{255, 255, 255, 1, 1, 1}));
  EXPECT_TRUE(
      decoding("P6 2 1 255\n12345").says("'it.png': the picture is damaged: it has 5 bytes of pixels; expected 6"))
      << decoding("P6 2 1 255\n12345").sentence;
  EXPECT_TRUE(decoding("P6 2 x").says("lacks a number"));
  EXPECT_TRUE(decoding("P6 2 1 255").says("ends within its header"));
  EXPECT_TRUE(decoding("P6 99999999999 1 255\n").says("above a million"));
  EXPECT_TRUE(decoding("P6 2 1 0\n123456").says("its largest value is 0"));
}

TEST(ImageFile, BrokenFilesGetOneSentenceWithTheirName) {
  EXPECT_TRUE(decoding("").says("an empty file; expected PNG, JPEG or PPM"));
  EXPECT_TRUE(decoding("GIF89a").says("not a picture that is known"));
  EXPECT_EQ(refusal_of([] { read_image("/nowhere.png"); }).kind, ErrorKind::io);
  EXPECT_EQ(refusal_of([] { read_image(kPictures + "inks.jpg"); }).kind, ErrorKind::unsupported);
  for (const char* name : {"rgb.png", "palette.png", "halved.jpg", "progressive.jpg", "colours.ppm"}) {
    const std::string whole = text_of(kPictures + name);
    for (size_t length = 4; length + 8 < whole.size(); length += 13) {
      const Refusal refusal = decoding(whole.substr(0, length));
      EXPECT_TRUE(refusal.kind == ErrorKind::io && refusal.says("it.png")) << name << length << refusal.sentence;
      EXPECT_EQ(refusal.sentence.find('\n'), std::string::npos);
    }
  }
  std::string changed = text_of(kPictures + "rgb.png");
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
  EXPECT_TRUE(decoding(changed).says("the picture is damaged"));
}

// A header alone says how large a picture is: it is refused before there is memory for it.
TEST(ImageFile, SizesAboveTheLimitsAreRefused) {
  EXPECT_TRUE(
      decoding("P6 65536 65536 255\n").says("65536 x 65536 pixels; expected 1 to 65536 a side and at most 67108864"));
  EXPECT_TRUE(decoding("P6 65537 1 255\n").says("65537 x 1 pixels"));
  EXPECT_TRUE(decoding("P6 0 1 255\n").says("0 x 1 pixels"));
  std::string jpeg = text_of(kPictures + "halved.jpg");
  const size_t frame = jpeg.find("\xFF\xC0");
  jpeg.replace(frame + 5, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_TRUE(decoding(jpeg).says("65535 x 65535 pixels") || decoding(jpeg).says("damaged")) << decoding(jpeg).sentence;
}

}  // namespace
}  // namespace mh
