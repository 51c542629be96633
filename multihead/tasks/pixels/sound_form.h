// Recordings as a model reads them, and how they are varied while it learns.
#pragma once

#include <string>

#include "multihead/io/sounds/log_mel.h"
#include "multihead/tasks/pixels/pixel_form.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

struct SoundVariation {
  int64_t shift = 0;                    // frames, at most, each way
  int64_t time_mask = 0, mel_mask = 0;  // most frames and bands that are set to 0
};

// x(t, m) = v(t + s, m), 0 outside and where a band of frames or one of mels is masked: v the frames of fitted_frames,
// s uniform in -shift … shift, the lengths of the bands in 0 … their most, their beginnings wherever they fit. Drawn in
// this order: s, length and beginning in time, length and beginning in mels. One channel of frames x mels.
class SoundForm : public PixelForm {
 public:
  // `frames_a_patch`: a patch holds so many frames whole; 0: the model says it.
  SoundForm(const SoundPreparation& preparation, const SoundVariation& variation, int64_t frames_a_patch = 0)
      : preparation_(preparation), variation_(variation), frames_a_patch_(frames_a_patch) {}

  std::string examples() const override { return "recordings"; }
  std::vector<std::string> endings() const override { return {".wav"}; }
  PixelShape shape() const override;
  // Throws: as read_wav; io where the recording has another rate.
  Tensor read(const std::string& path) const override;
  Tensor pixels(const Tensor& example, Random* random) const override;
  void save(const std::string& folder) const override;
  const SoundPreparation& preparation() const { return preparation_; }

 private:
  SoundPreparation preparation_;
  SoundVariation variation_;
  int64_t frames_a_patch_;
};

SoundVariation sound_variation(const DataConfig& data);

// FOLDER/sound.json: how sound becomes pixels.
inline constexpr const char* kSoundFile = "sound.json";

}  // namespace mh
