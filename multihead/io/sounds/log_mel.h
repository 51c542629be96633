// From a recording to a picture of its frequencies over time.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/io/sounds/wav_file.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct SoundPreparation {
  int64_t rate = 8000;
  double window_ms = 25, hop_ms = 10;
  int64_t mels = 40, frames = 100;
};

// f32 (frames of the recording, mels). With W = round(rate · window_ms / 1000) samples in a window, H likewise from one
// to the next, N the least power of 2 that is W or more:
//   frame t, of 1 + (samples - W) / H, rounded down, or 1 of a shorter recording, filled up with 0:
//   P_t(k) = |Σ_i w(i) x(t H + i) exp(-2π√-1 k i / N)|², w(i) = ½ - ½ cos(2π i / W), k = 0 … N / 2
//   y_t(m) = ln max(1e-10, Σ_k P_t(k) f_m(k rate / N)), m = 0 … mels - 1
//   f_m: a triangle from edge m over edge m + 1, where it is 1, to edge m + 2; mels + 2 edges as far from each other in
//   mel = 2595 log10(1 + Hz / 700), from 0 to rate / 2
// and the result (y - mean) / (deviation + 1e-5), both over all of the recording. Throws: invalid_argument where the
// recording has another rate, or is empty.
Tensor log_mel(const Sound& sound, const SoundPreparation& preparation);

// f32 (1, frames, mels): the beginning of it, or with zeros behind it.
Tensor fitted_frames(const Tensor& log_mel, const SoundPreparation& preparation);

// sound.json. Throws: io, naming file and key, where a value is none that is possible.
SoundPreparation read_sound_preparation(const std::string& path);
std::string sound_preparation_json(const SoundPreparation& preparation);

}  // namespace mh
