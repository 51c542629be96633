// Recordings and their frames against what Python's struct and numpy's Fourier transform make of them; broken files.
#include <gtest/gtest.h>

#include <filesystem>

#include "multihead/io/safetensors.h"
#include "multihead/io/sounds/log_mel.h"
#include "multihead/io/sounds/wav_file.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

const std::string kSounds = std::string(MH_TEST_DATA) + "/io/sounds/golden/";

Refusal hearing(const std::string& bytes) {
  return refusal_of([&] { decode_wav(std::as_bytes(std::span(bytes)), "it.wav"); });
}

TEST(Sounds, SamplesOfEveryCodingAreThoseOfPython) {
  const Safetensors golden = read_safetensors(kSounds + "golden.safetensors");
  int seen = 0;
  for (const auto& [name, expected] : golden.tensors) {
    if (name.ends_with(".mel")) continue;
    ++seen;
    const Sound sound = read_wav(kSounds + name + ".wav");
    EXPECT_EQ(sound.rate, 22050);
    ASSERT_EQ(static_cast<int64_t>(sound.samples.size()), expected.count()) << name;
    for (size_t n = 0; n < sound.samples.size(); ++n)
      EXPECT_EQ(sound.samples[n], expected.data<float>()[n]) << name << " " << n;
  }
  EXPECT_EQ(seen, 7);
}

TEST(Sounds, FramesAreThoseOfNumpy) {
  const Safetensors golden = read_safetensors(kSounds + "golden.safetensors");
  for (const std::string name : {"low", "high", "short"}) {
    const Tensor& expected = golden.tensors.at(name + ".mel");
    const SoundPreparation p{.rate = name == "high" ? 16000 : 8000};
    const Tensor y = log_mel(read_wav(kSounds + name + ".wav"), p);
    ASSERT_EQ(y.shape(), expected.shape()) << name;
    for (int64_t n = 0; n < y.count(); ++n) EXPECT_NEAR(y.data<float>()[n], expected.data<float>()[n], 1e-5) << name;
  }
  const Sound low = read_wav(kSounds + "low.wav");
  EXPECT_EQ(refusal_of([&] { log_mel(low, {.rate = 16000}); }).sentence,
            "log_mel: recorded with 8000 samples a second; expected 16000");
  EXPECT_TRUE(refusal_of([&] { log_mel({.rate = 8000, .samples = {}}, {}); }).says("is empty"));
}

TEST(Sounds, FramesAreCutAndFilledUp) {
  const Tensor y = log_mel(read_wav(kSounds + "low.wav"), {});  // 12 frames: 1 + (1100 - 200) / 80
  ASSERT_EQ(y.size(0), 12);
  const Tensor cut = fitted_frames(y, {.frames = 5}), filled = fitted_frames(y, {.frames = 20});
  EXPECT_EQ(cut.shape(), Shape({1, 5, 40}));
  for (int64_t n = 0; n < 20 * 40; ++n) {
    if (n < 5 * 40) {
      EXPECT_EQ(cut.data<float>()[n], y.data<float>()[n]);
    }
    EXPECT_EQ(filled.data<float>()[n], n < 12 * 40 ? y.data<float>()[n] : 0);
  }
}

TEST(Sounds, WhatIsWrittenIsRead) {
  const Sound sound{.rate = 8000, .samples = {0, 0.5F, -1, 1, 2}};
  const std::string bytes = encode_wav(sound);
  const Sound back = decode_wav(std::as_bytes(std::span(bytes)), "it");
  EXPECT_EQ(back.rate, 8000);
  ASSERT_EQ(back.samples.size(), 5U);
  for (size_t n = 0; n < 5; ++n) EXPECT_NEAR(back.samples[n], std::min(sound.samples[n], 1.0F), 1.0 / 32767);
}

TEST(Sounds, BrokenFilesGetOneSentenceWithTheirName) {
  EXPECT_TRUE(hearing("").says("'it.wav': an empty file; expected WAV"));
  EXPECT_TRUE(hearing("RIFF1234AVI no sound").says("not a WAV file"));
  const std::string whole = text_of(kSounds + "low.wav");
  for (size_t length = 12; length < whole.size(); length += 97) {
    const Refusal refusal = hearing(whole.substr(0, length));
    EXPECT_TRUE(refusal.says("'it.wav': it ends early")) << length << refusal.sentence;
  }
  std::string changed = whole;
  changed[20] = 2;  // ADPCM
  EXPECT_EQ(hearing(changed).kind, ErrorKind::unsupported);
  EXPECT_TRUE(hearing(changed).says("coding 2 of 16 bits"));
  changed = whole;
  changed[22] = 0;
  EXPECT_TRUE(hearing(changed).says("0 channels of 8000 samples a second"));
  changed = whole.substr(0, 44);
  changed.replace(40, 4, std::string(4, '\0'));
  EXPECT_TRUE(hearing(changed).says("it holds no samples"));
  std::string nothing = text_of(kSounds + "float32.wav");
  const size_t data = nothing.find("data");
  nothing.replace(data + 8, 4, "\xFF\xFF\xFF\x7F");
  EXPECT_TRUE(hearing(nothing).says("sample 1 is not finite"));
}

TEST(Sounds, PreparationsAreWrittenAndRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "sound.json";
  put_text(path, sound_preparation_json({.rate = 16000, .window_ms = 32, .hop_ms = 12.5, .mels = 64, .frames = 200}));
  const SoundPreparation p = read_sound_preparation(path);
  EXPECT_EQ(p.rate, 16000);
  EXPECT_EQ(p.window_ms, 32);
  EXPECT_EQ(p.hop_ms, 12.5);
  EXPECT_EQ(p.mels, 64);
  EXPECT_EQ(p.frames, 200);
  put_text(path, R"({"sample_rate": 8000, "window_ms": 25, "hop_ms": 0})");
  EXPECT_TRUE(
      refusal_of([&] { read_sound_preparation(path); }).says("hop_ms is '0'; expected a number from 1 to 1000"));
  put_text(path, "{}");
  EXPECT_TRUE(refusal_of([&] { read_sound_preparation(path); }).says("sample_rate is 'missing'"));
}

}  // namespace
}  // namespace mh
