// A classifier for labels that it was not trained for: a model of what follows from a text judges each label.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/dtype.h"
#include "multihead/tasks/verbs/classifier.h"

namespace mh {

struct ZeroShotOptions {
  std::string hypothesis = "This example is {}.";  // a label takes the place of {}
  bool multi = false;                              // the labels do not exclude one another
};

// Copies share the model; every method may be called from many threads at once.
//
// Every text is judged with the hypothesis that each label makes, as a pair. With x the model's logits,
//   p(label) = exp x[entailment](label) / Σ over the labels,
//   with multi, or of a single label, exp x[entailment] / (exp x[entailment] + exp x[contradiction]) of its own pair,
// as transformers' ZeroShotClassificationPipeline has it.
class ZeroShotClassifier {
 public:
  // A folder with a classifier of pairs one of whose labels begins with "entail", whatever its case: the first that
  // does. The contradiction is the first that begins with "contra", or of two labels the other one. Throws: as
  // Classifier::load; invalid_argument where no label is an entailment.
  static ZeroShotClassifier load(const std::string& folder, DType compute = DType::f32);

  // Of one text, or of many in their order; `scores` are those of `labels`, in their order. A text that is too long
  // with its hypothesis is cut at its end. Throws: invalid_argument for a text or a label that is not UTF-8, no label
  // or an empty one, a hypothesis that has not one {}, one that leaves no place for the text, and multi where no label
  // is a contradiction.
  Classification operator()(std::string_view text, std::span<const std::string> labels,
                            const ZeroShotOptions& options = {}) const;
  std::vector<Classification> operator()(std::span<const std::string> texts, std::span<const std::string> labels,
                                         const ZeroShotOptions& options = {}) const;

  // Tensors of the folder that the model does not read.
  const std::vector<std::string>& unused() const;

 private:
  struct Parts;
  explicit ZeroShotClassifier(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
