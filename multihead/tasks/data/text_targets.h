// What is right of texts: a class, several labels, or a number; the loss and the metrics that go with it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/ops/rows/cross_entropy.h"
#include "multihead/tasks/data/labelled_text.h"

namespace mh {

struct TextTargets {
  LabelKind kind = LabelKind::one;
  std::vector<int32_t> classes{};  // of LabelKind::one
  std::vector<float> values{};     // several: (texts, width), 1 where a text has the label, else 0; number: as it is
  int64_t width = 1;

  int64_t size() const { return static_cast<int64_t>(kind == LabelKind::one ? classes.size() : values.size()) / width; }
  // Those of some texts.
  TextTargets of(std::span<const int64_t> texts) const;
  // f32 (texts, width), of several labels and numbers.
  Tensor table() const;
};

// How the column of the label is read.
struct LabelReading {
  LabelKind kind = LabelKind::one;
  std::string separator = ",";  // between several labels, which are trimmed; alone it means none
};

// The labels that occur; of numbers one, LABEL_0. Throws: invalid_argument where fewer than two are left of
// LabelKind::one, or none.
Labels labels_of(const LabelledTexts& texts, const LabelReading& reading);

// Throws: invalid_argument, with file and line, for a label that is not one of `labels`, and what is no finite number.
TextTargets targets_of(const LabelledTexts& texts, const Labels& labels, const LabelReading& reading);

// Of several labels or a number: logits f32 (texts, width). `nll`: the loss without smoothing, times the texts.
// Throws: as binary_cross_entropy and squared_error.
CrossEntropy target_loss(const Tensor& logits, const TextTargets& right, float smoothing);

}  // namespace mh
