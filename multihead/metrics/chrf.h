// chrF of a corpus, equal to sacreBLEU's (2.6).
//
//   chrF = 100 · (1 + β²) P R / (β² P + R)
//
// P and R: precision and recall of n-grams of characters without white space, n = 1..6, averaged over the orders both
// sides are long enough for. Of several references the one with the best score of its sentence counts.
#pragma once

#include <string>
#include <vector>

namespace mh {

struct ChrfOptions {
  int char_order = 6;
  int word_order = 0;  // 2: chrF++
  double beta = 2;
  bool lower_case = false;
};

struct Chrf {
  double score = 0;  // 0 to 100
  // "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:multihead-…"; all but the version is as sacreBLEU writes it.
  std::string signature;
};

// references[i] are those of hypotheses[i], at least one; their number may differ. Broken UTF-8 is read as U+FFFD.
// Throws: invalid_argument where there is no sentence, one without reference, or an order is out of range.
Chrf chrf(const std::vector<std::string>& hypotheses, const std::vector<std::vector<std::string>>& references,
          const ChrfOptions& options = {});

}  // namespace mh
