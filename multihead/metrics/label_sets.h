// How well sets of labels were predicted, where each item may have several or none; equal to scikit-learn's.
#pragma once

#include <cstdint>
#include <span>

namespace mh {

// Of a label: F1 = 2 · both / (predicted + right), a quotient of zeros 0.
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
