// How well classes were predicted: accuracy, precision, recall, F1, Matthews correlation; equal to scikit-learn's.
//
// Classes are numbers from 0. C[r, p] counts the items of class r that were predicted as p; for a class k
//
//   precision = C[k, k] / Σ_r C[r, k]     recall = C[k, k] / Σ_p C[k, p]     F1 = 2 C[k, k] / (Σ_r C[r, k] + Σ_p C[k,
//   p])
//
// A quotient of zeros is 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mh {

struct ConfusionMatrix {
  int64_t classes = 0;
  std::vector<int64_t> counts;  // [classes, classes]: a row per class of the references

  int64_t at(int64_t reference, int64_t prediction) const {
    return counts[static_cast<size_t>(reference * classes + prediction)];
  }
};

struct ClassScore {
  double precision = 0, recall = 0, f1 = 0;
  int64_t references = 0, predictions = 0;  // items that are of this class, and items predicted to be
};

// The share of predictions that equal their reference, 0 to 1. Any numbers may be classes.
// Throws: invalid_argument where the lists are empty or differ in length.
double accuracy(std::span<const int32_t> predictions, std::span<const int32_t> references);

// Throws: invalid_argument where the lists are empty or differ in length, a class is not in 0 … classes - 1, or classes
// is not in 1 … 10,000.
ConfusionMatrix confusion_matrix(std::span<const int32_t> predictions, std::span<const int32_t> references,
                                 int64_t classes);

// One for each class.
std::vector<ClassScore> class_scores(const ConfusionMatrix& matrix);

// The mean F1 of the classes that occur, as a prediction or as a reference.
double macro_f1(const ConfusionMatrix& matrix);

// The correlation of predictions and references, -1 to 1, for any number of classes. With s items, c of them right, and
// r_k, p_k items of class k by reference and prediction:
//
//   (c s - Σ r_k p_k) / sqrt((s² - Σ p_k²) (s² - Σ r_k²)),   0 where one side knows a single class.
double matthews_correlation(const ConfusionMatrix& matrix);

// Of items that may have several labels, or none. Of a label: F1 = 2 · both / (predicted + right), a quotient of zeros
// 0.
struct LabelSetScores {
  double micro_f1 = 0;     // of all labels together
  double macro_f1 = 0;     // the mean over labels
  double exact_match = 0;  // the share of items whose predicted set is the right one
};

// predictions and references: (items, labels), 1 where an item has a label, else 0. Throws: invalid_argument where
// the lists are empty, differ in length or hold no whole items.
LabelSetScores label_set_scores(std::span<const uint8_t> predictions, std::span<const uint8_t> references,
                                int64_t labels);

}  // namespace mh
