// Classes of pixels as a task: pictures, or recordings as pictures of their frequencies, with labels, by a ViT.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/data/batches.h"
#include "multihead/tasks/data/labels.h"
#include "multihead/tasks/pixels/pixel_examples.h"
#include "multihead/tasks/task.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

struct PixelsOfOneBatch : Batch {
  Tensor pixels{};                  // f32 (examples, channels, height, width)
  std::vector<int32_t> references;  // the class of each
  int64_t tokens() const override { return static_cast<int64_t>(references.size()); }
};

class PixelTask : public Task {
 public:
  // Reads the data. Example n of epoch e is varied by Random(seed + 1, 2^32 e + n) alone. Throws: as read_pixel_files,
  // read_idx_images and form_of_folder; invalid_argument where the training data have fewer than 2 labels, or the
  // validation data one that they have not.
  explicit PixelTask(const TaskSetup& setup);

  TaskFacts facts() const override;
  std::string digest() const override { return train_.digest(); }
  int64_t batches(int64_t epochs) const override { return order_->in_epochs(epochs); }
  std::unique_ptr<Batch> batch(const Position& at) const override;
  Position after(const Position& at) const override { return order_->after(at); }
  void make_model(std::shared_ptr<ParamStore> store) override;
  CrossEntropy loss(const Batch& batch, Pass& pass) const override;
  Verdict validate(const ValidateOptions& options) override;
  void begin(const std::string& folder) const override { form_->save(folder); }
  void save(const std::string& folder) const override { model_->save(folder); }

  const Labels& labels() const { return labels_; }
  const PixelForm& form() const { return *form_; }

 private:
  PixelShape shape() const;

  const TaskSetup setup_;
  PixelExamples train_, valid_;
  std::shared_ptr<const PixelForm> form_;
  Labels labels_;
  std::vector<int32_t> train_classes_, valid_classes_;
  std::vector<float> weights_;  // by class; empty: all 1
  std::optional<BatchOrder> order_;
  std::optional<Pretrained> model_;
};

// Examples for a model of this form: those of a folder or a table, or pictures in IDX files, where `labels` names the
// other one. Throws: as read_pixel_files and read_idx_images.
PixelExamples read_pixel_examples(const std::string& path, const std::string& labels, const DataConfig& data,
                                  const PixelForm& form);

}  // namespace mh
