// A ViT that gives labels to pixels: made for a run, and read from a folder with the form of what it reads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/classify.h"
#include "multihead/tasks/data/labels.h"
#include "multihead/tasks/pixels/pixel_examples.h"
#include "multihead/tasks/verbs/classifier.h"

namespace mh {

// The model that setup.from (a ViT's or DeiT's folder) or the sizes of [model] describe, made in `store`: pre-norm,
// learned positions, read at its class token. Weights of the folder are copied as copy_weights does. Throws: as
// Pretrained::load; invalid_argument, naming the keys, where patches do not fill `shape`, or it is not the model's.
Pretrained make_pixel_model(const TaskSetup& setup, const PixelShape& shape, const Labels& labels,
                            std::shared_ptr<ParamStore> store);

// How the folder's model wants its examples, varied as `data` says: preprocessor_config.json of pictures, or
// sound.json. Throws: io where there is no such file; as read_preparation and read_sound_preparation.
std::shared_ptr<const PixelForm> form_of_folder(const std::string& folder, const DataConfig& data = {});

// f32 (examples, labels).
Tensor pixel_logits(const Pretrained& model, const Tensor& pixels, Pass& pass);

class PixelModel {
 public:
  // Throws: as Pretrained::load and form_of_folder; io where the folder holds another kind of model; invalid_argument
  // where the form is not what the model reads.
  static PixelModel load(const std::string& folder, DType compute = DType::f32);

  const Labels& labels() const { return labels_; }
  const PixelForm& form() const { return *form_; }
  // Of examples as the form keeps them, a batch at a time.
  std::vector<Classification> classify(std::span<const Tensor> examples) const;
  // Of those with labels. Throws: as PixelExamples::classes.
  ClassScores score(const PixelExamples& examples) const;

 private:
  PixelModel(Pretrained model, std::shared_ptr<const PixelForm> form, Labels labels, DType compute)
      : model_(std::move(model)), form_(std::move(form)), labels_(std::move(labels)), compute_(compute) {}
  Pretrained model_;
  std::shared_ptr<const PixelForm> form_;
  Labels labels_;
  DType compute_;
};

// Pixels of these examples, one after the other, each varied by its own `random` where there are any.
Tensor stacked_pixels(const PixelForm& form, const PixelExamples& examples, std::span<const int64_t> numbers,
                      std::span<Random> random = {});
// Of all examples, their order kept, with weights laid out for inference by the caller.
ClassScores score_pixels(const Pretrained& model, const PixelForm& form, const PixelExamples& examples,
                         const std::vector<int32_t>& classes, DType compute);

}  // namespace mh
