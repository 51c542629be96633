// A classifier of recordings in a folder: files or samples in, labels and their probabilities out.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/dtype.h"
#include "multihead/io/sounds/wav_file.h"
#include "multihead/tasks/verbs/classifier.h"

namespace mh {

// Copies share the model; every method may be called from many threads at once.
class SoundClassifier {
 public:
  // Reads the folder of a model of task.kind speech_class: config.json, sound.json and model.safetensors. `compute`:
  // the type of the products, f32 or bf16. Throws: io, invalid_argument, unsupported; a sentence that names the file.
  static SoundClassifier load(const std::string& folder, DType compute = DType::f32);

  // Of one recording. Throws: invalid_argument where it is empty or has another rate than the model's.
  Classification operator()(const Sound& sound) const;
  // Of files, in their order. Throws: as read_wav; io where a file has another rate.
  std::vector<Classification> operator()(std::span<const std::string> files) const;

  const std::vector<std::string>& labels() const;

 private:
  struct Parts;
  explicit SoundClassifier(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
