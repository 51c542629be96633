// Counts by label.
#include "multihead/metrics/label_sets.h"

#include <vector>

#include "multihead/base/error.h"

namespace mh {

namespace {

struct LabelCounts {
  int64_t both = 0, either = 0;  // either: predicted and right ones, added up
  double f1() const { return either == 0 ? 0 : 2 * static_cast<double>(both) / static_cast<double>(either); }
};

}  // namespace

LabelSetScores label_set_scores(std::span<const uint8_t> predictions, std::span<const uint8_t> references,
                                int64_t labels) {
  const auto width = static_cast<size_t>(labels);
  check(
      labels > 0 && !predictions.empty() && predictions.size() == references.size() && predictions.size() % width == 0,
      "label_set_scores: {} predictions and {} references of {} labels; expected whole items, the same number",
      predictions.size(), references.size(), labels);
  std::vector<LabelCounts> counts(width);
  LabelCounts all;
  int64_t exact = 0;
  for (size_t begin = 0; begin < predictions.size(); begin += width) {
    bool same = true;
    for (size_t c = 0; c < width; ++c) {
      const int said = predictions[begin + c] != 0, right = references[begin + c] != 0;
      counts[c].both += said * right;
      counts[c].either += said + right;
      same = same && said == right;
    }
    exact += same;
  }
  LabelSetScores out{.exact_match = static_cast<double>(exact) / static_cast<double>(predictions.size() / width)};
  for (const LabelCounts& each : counts) {
    all.both += each.both;
    all.either += each.either;
    out.macro_f1 += each.f1() / static_cast<double>(labels);
  }
  out.micro_f1 = all.f1();
  return out;
}

}  // namespace mh
