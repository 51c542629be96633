// CIDEr-D of captions, equal to pycocoevalcap's: agreement with several references, rare n-grams counting most.
//
// Captions are vectors over the n-grams of one order, n = 1..4, with g(w) = count(w) · log(images / images whose
// references have w), and
//
//   CIDEr-D = 10 · mean over n and references r of  exp(-(l_h - l_r)² / 72) · Σ min(g_h, g_r) g_r / (|g_h| |g_r|)
//
// with l the number of a caption's words.
#pragma once

#include <string>
#include <vector>

namespace mh {

struct Cider {
  double score = 0;            // the mean of the scores; 0 to 10
  std::vector<double> scores;  // one for each image
};

// A caption is a list of words. references[i] are those of hypotheses[i], at least one; their number may differ. An
// n-gram that is in no reference counts as one that a single image has. One image alone has a score of 0: there is
// nothing for its words to be rare among.
// Throws: invalid_argument where there is no caption, the lists differ in length, or a caption has no reference.
Cider cider(const std::vector<std::vector<std::string>>& hypotheses,
            const std::vector<std::vector<std::vector<std::string>>>& references);

}  // namespace mh
