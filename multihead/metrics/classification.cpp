// How well classes were predicted.
#include "multihead/metrics/classification.h"

#include <cmath>
#include <cstddef>
#include <string_view>

#include "multihead/base/error.h"

namespace mh {

namespace {

// A matrix of 10,000 classes takes 800 MB.
constexpr int64_t kMostClasses = 10'000;

void check_classes(std::string_view metric, std::span<const int32_t> predictions, std::span<const int32_t> references) {
  check(predictions.size() == references.size(), "{}: {} predictions and {} references; expected the same number",
        metric, predictions.size(), references.size());
  check(!predictions.empty(), "{}: no predictions; expected at least 1", metric);
}

double quotient(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double accuracy(std::span<const int32_t> predictions, std::span<const int32_t> references) {
  check_classes("accuracy", predictions, references);
  int64_t right = 0;
  for (size_t i = 0; i < predictions.size(); ++i) right += predictions[i] == references[i] ? 1 : 0;
  return quotient(right, static_cast<int64_t>(predictions.size()));
}

ConfusionMatrix confusion_matrix(std::span<const int32_t> predictions, std::span<const int32_t> references,
                                 int64_t classes) {
  check_classes("confusion_matrix", predictions, references);
  check(classes >= 1 && classes <= kMostClasses, "confusion_matrix: {} classes; expected 1 to {}", classes,
        kMostClasses);
  ConfusionMatrix out{.classes = classes, .counts = std::vector<int64_t>(static_cast<size_t>(classes * classes))};
  for (size_t i = 0; i < predictions.size(); ++i) {
    const int64_t prediction = predictions[i], reference = references[i];
    check(prediction >= 0 && prediction < classes && reference >= 0 && reference < classes,
          "confusion_matrix: item {} is of class {} and predicted as {}; expected classes 0 to {}", i + 1, reference,
          prediction, classes - 1);
    ++out.counts[static_cast<size_t>(reference * classes + prediction)];
  }
  return out;
}

std::vector<ClassScore> class_scores(const ConfusionMatrix& matrix) {
  std::vector<ClassScore> out(static_cast<size_t>(matrix.classes));
  for (int64_t k = 0; k < matrix.classes; ++k) {
    ClassScore& score = out[static_cast<size_t>(k)];
    for (int64_t other = 0; other < matrix.classes; ++other) {
      score.references += matrix.at(k, other);
      score.predictions += matrix.at(other, k);
    }
    const int64_t right = matrix.at(k, k);
    score.precision = quotient(right, score.predictions);
    score.recall = quotient(right, score.references);
    score.f1 = quotient(2 * right, score.predictions + score.references);
  }
  return out;
}

double macro_f1(const ConfusionMatrix& matrix) {
  double sum = 0;
  int64_t occurring = 0;
  for (const ClassScore& score : class_scores(matrix)) {
    if (score.predictions + score.references == 0) continue;
    sum += score.f1;
    ++occurring;
  }
  return occurring == 0 ? 0 : sum / static_cast<double>(occurring);
}

double matthews_correlation(const ConfusionMatrix& matrix) {
  double items = 0, right = 0, both = 0, predicted = 0, expected = 0;
  const std::vector<ClassScore> scores = class_scores(matrix);
  for (int64_t k = 0; k < matrix.classes; ++k) {
    const auto r = static_cast<double>(scores[static_cast<size_t>(k)].references);
    const auto p = static_cast<double>(scores[static_cast<size_t>(k)].predictions);
    items += r;
    right += static_cast<double>(matrix.at(k, k));
    both += r * p;
    predicted += p * p;
    expected += r * r;
  }
  const double spread = (items * items - predicted) * (items * items - expected);
  return spread == 0 ? 0 : (right * items - both) / std::sqrt(spread);
}

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
