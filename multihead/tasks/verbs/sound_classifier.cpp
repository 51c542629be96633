// Recordings through a ViT, a batch at a time.
#include "multihead/tasks/verbs/sound_classifier.h"

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/sounds/log_mel.h"
#include "multihead/tasks/pixels/pixel_model.h"
#include "multihead/tasks/pixels/sound_form.h"

namespace mh {

struct SoundClassifier::Parts {
  PixelModel model;
};

SoundClassifier SoundClassifier::load(const std::string& folder, DType compute) {
  PixelModel model = PixelModel::load(folder, compute);
  if (dynamic_cast<const SoundForm*>(&model.form()) == nullptr)
    fail(ErrorKind::io, "{}: its model reads {}; expected recordings", printable_path(folder), model.form().examples());
  return SoundClassifier(std::make_shared<const Parts>(Parts{std::move(model)}));
}

Classification SoundClassifier::operator()(const Sound& sound) const {
  const SoundPreparation& preparation = dynamic_cast<const SoundForm&>(parts_->model.form()).preparation();
  const Tensor one[] = {fitted_frames(log_mel(sound, preparation), preparation)};
  return parts_->model.classify(one).front();
}

std::vector<Classification> SoundClassifier::operator()(std::span<const std::string> files) const {
  std::vector<Tensor> recordings;
  for (const std::string& file : files) recordings.push_back(parts_->model.form().read(file));
  return parts_->model.classify(recordings);
}

const std::vector<std::string>& SoundClassifier::labels() const { return parts_->model.labels().names(); }

}  // namespace mh
