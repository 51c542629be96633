// The word error rate of transcripts.
#include "multihead/metrics/word_errors.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/metrics/metric_text.h"

namespace mh {

namespace {

// Levenshtein's distance, one row of its table at a time.
int64_t edit_distance(const std::vector<std::u32string>& from, const std::vector<std::u32string>& to) {
  std::vector<int64_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  for (const std::u32string& word : from) {
    int64_t diagonal = row[0]++;
    for (size_t i = 0; i < to.size(); ++i) {
      const int64_t replaced = diagonal + (word == to[i] ? 0 : 1);
      diagonal = row[i + 1];
      row[i + 1] = std::min({replaced, diagonal + 1, row[i] + 1});
    }
  }
  return row.back();
}

}  // namespace

WordErrors word_errors(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  check(hypotheses.size() == references.size(),
        "word_errors: {} hypotheses and {} references; expected the same number", hypotheses.size(), references.size());
  WordErrors out;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const auto reference = detail::split(detail::code_points(references[i]));
    out.errors += edit_distance(detail::split(detail::code_points(hypotheses[i])), reference);
    out.words += static_cast<int64_t>(reference.size());
  }
  check(out.words > 0, "word_errors: no words in {} references; expected at least 1", references.size());
  out.rate = static_cast<double>(out.errors) / static_cast<double>(out.words);
  return out;
}

}  // namespace mh
