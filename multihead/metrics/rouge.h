// ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum of a summary, equal to Google's rouge-score.
//
//   precision = matches / size of the prediction     recall = matches / size of the target
//   F1        = 2 precision recall / (precision + recall)
//
// ROUGE-n matches n-grams, each as often as both have it. ROUGE-L: the longest common subsequence of words. ROUGE-Lsum:
// each line is a sentence; of a target's sentence count the words that are in its longest common subsequence with any
// sentence of the prediction, each no more often than both have it. A quotient of zeros is 0.
//
// Words are runs of a-z and 0-9 in the lower-cased text: all else, letters with accents too, parts them.
#pragma once

#include <string>
#include <vector>

namespace mh {

struct RougeOptions {
  // Compare the stems of words that are longer than 3 letters (Porter's, as NLTK has them).
  bool stem = false;
};

struct RougeScore {
  double precision = 0, recall = 0, f1 = 0;  // 0 to 1
};

struct Rouge {
  RougeScore rouge1, rouge2, rouge_l, rouge_lsum;
};

// Of several targets each of the four takes the first with the best F1.
// Throws: invalid_argument where there is no target.
Rouge rouge(const std::string& prediction, const std::vector<std::string>& targets, const RougeOptions& options = {});

}  // namespace mh
