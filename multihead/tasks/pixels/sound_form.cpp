// Varying recordings.
#include "multihead/tasks/pixels/sound_form.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"

namespace mh {

namespace {

struct Band {
  int64_t first = 0, end = 0;
  bool holds(int64_t n) const { return n >= first && n < end; }
};

Band draw_band(int64_t most, int64_t size, Random& random) {
  if (most == 0) return {};
  const int64_t length = random.below(std::min(most, size) + 1), first = random.below(size - length + 1);
  return {first, first + length};
}

}  // namespace

PixelShape SoundForm::shape() const {
  return {.channels = 1,
          .height = preparation_.frames,
          .width = preparation_.mels,
          .patch_height = frames_a_patch_,
          .patch_width = frames_a_patch_ == 0 ? 0 : preparation_.mels};
}

Tensor SoundForm::read(const std::string& path) const {
  const Sound sound = read_wav(path);
  if (sound.rate != preparation_.rate)
    fail(ErrorKind::io, "{}: recorded with {} samples a second; expected {}, as the model's others",
         printable_path(path), sound.rate, preparation_.rate);
  return fitted_frames(log_mel(sound, preparation_), preparation_);
}

Tensor SoundForm::pixels(const Tensor& example, Random* random) const {
  if (random == nullptr) return example;
  const int64_t frames = preparation_.frames, mels = preparation_.mels;
  const int64_t shift = variation_.shift == 0 ? 0 : random->below(2 * variation_.shift + 1) - variation_.shift;
  const Band in_time = draw_band(variation_.time_mask, frames, *random),
             in_mels = draw_band(variation_.mel_mask, mels, *random);
  const Tensor out = zeros({1, frames, mels});
  for (int64_t t = 0; t < frames; ++t) {
    if (in_time.holds(t) || t + shift < 0 || t + shift >= frames) continue;
    for (int64_t m = 0; m < mels; ++m)
      if (!in_mels.holds(m)) out.data<float>()[t * mels + m] = example.data<float>()[(t + shift) * mels + m];
  }
  return out;
}

void SoundForm::save(const std::string& folder) const {
  write_durably(folder + "/" + kSoundFile, sound_preparation_json(preparation_));
}

SoundVariation sound_variation(const DataConfig& data) {
  return {.shift = data.shift, .time_mask = data.time_mask, .mel_mask = data.mel_mask};
}

}  // namespace mh
