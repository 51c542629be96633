// A classifier of pictures in a folder: files or pixels in, labels and their probabilities out.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/dtype.h"
#include "multihead/tasks/verbs/classifier.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// Copies share the model; every method may be called from many threads at once.
class ImageClassifier {
 public:
  // Reads a ViT's or DeiT's folder, trained here or by transformers: config.json, preprocessor_config.json and
  // model.safetensors. `compute`: the type of the products, f32 or bf16. Throws: io, invalid_argument, unsupported; a
  // sentence that names the file.
  static ImageClassifier load(const std::string& folder, DType compute = DType::f32);

  // Of one picture, u8 (height, width, 3), of any size. Throws: invalid_argument where it is no such picture.
  Classification operator()(const Tensor& picture) const;
  // Of files, in their order. Throws: as read_image.
  std::vector<Classification> operator()(std::span<const std::string> files) const;

  const std::vector<std::string>& labels() const;

 private:
  struct Parts;
  explicit ImageClassifier(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
