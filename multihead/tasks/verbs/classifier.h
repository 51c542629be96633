// A classifier in a folder: texts in, labels and their probabilities out.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/dtype.h"

namespace mh {

struct Classification {
  std::string label{};          // the most probable
  float score = 0;              // its probability
  std::vector<float> scores{};  // of every label, in the order of Classifier::labels(): they sum to 1; of a folder with
                                // one label, or whose labels do not exclude one another, each for itself; of a
                                // regression its number
  bool cut = false;             // the text was longer than the model reads
};

// Copies share the model; every method may be called from many threads at once.
class Classifier {
 public:
  // Reads FOLDER/model.safetensors and FOLDER/tokenizer.json. `compute`: the type of the products, f32 or bf16.
  // Throws: io, invalid_argument, unsupported; a sentence that names the file.
  static Classifier load(const std::string& folder, DType compute = DType::f32);

  // Of one text, or of many in their order. A tab parts the two texts of a pair. Throws:
  // invalid_argument for a text that is not UTF-8, and a pair without its tab.
  Classification operator()(std::string_view text) const;
  std::vector<Classification> operator()(std::span<const std::string> texts) const;

  const std::vector<std::string>& labels() const;
  bool reads_pairs() const;
  // Tensors of the folder that the model does not read.
  const std::vector<std::string>& unused() const;

 private:
  struct Parts;
  explicit Classifier(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
