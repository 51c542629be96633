// CIDEr-D of captions.
#include "multihead/metrics/cider.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "multihead/base/error.h"

namespace mh {

namespace {

constexpr size_t kLongestPhrase = 4;
constexpr double kLengthSpread = 6;

// Words in a row, kept in order: sums over phrases have one order on every machine.
using Phrase = std::vector<std::string>;
using Phrases = std::map<Phrase, double>;

Phrases phrases_of(const std::vector<std::string>& words, size_t n) {
  Phrases out;
  for (size_t i = 0; i + n <= words.size(); ++i) {
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(i);
    ++out[Phrase(begin, begin + static_cast<std::ptrdiff_t>(n))];
  }
  return out;
}

// How rare phrases are: in how many images' references they occur.
class Rarity {
 public:
  explicit Rarity(const std::vector<std::vector<std::vector<std::string>>>& references)
      : log_images_(std::log(static_cast<double>(references.size()))) {
    for (const auto& captions : references) {
      std::set<Phrase> seen;
      for (const auto& words : captions)
        for (size_t n = 1; n <= kLongestPhrase; ++n)
          for (const auto& [phrase, count] : phrases_of(words, n)) seen.insert(phrase);
      for (const Phrase& phrase : seen) ++images_[phrase];
    }
  }

  double weight(const Phrase& phrase) const {
    const auto found = images_.find(phrase);
    return found == images_.end() ? log_images_ : log_images_ - std::log(found->second);
  }

 private:
  double log_images_;
  std::map<Phrase, double> images_;
};

struct Caption {
  Caption(const std::vector<std::string>& words, const Rarity& rarity) : length(static_cast<double>(words.size())) {
    for (size_t n = 0; n < kLongestPhrase; ++n) {
      orders[n] = phrases_of(words, n + 1);
      for (auto& [phrase, value] : orders[n]) {
        value *= rarity.weight(phrase);
        norms[n] += value * value;
      }
      norms[n] = std::sqrt(norms[n]);
    }
  }

  double length;
  std::array<Phrases, kLongestPhrase> orders;
  std::array<double, kLongestPhrase> norms{};
};

// The mean over the orders.
double similarity(const Caption& ours, const Caption& theirs) {
  double sum = 0;
  for (size_t n = 0; n < kLongestPhrase; ++n) {
    const double norm = ours.norms[n] * theirs.norms[n];
    if (norm == 0) continue;
    double product = 0;
    for (const auto& [phrase, value] : ours.orders[n])
      if (const auto found = theirs.orders[n].find(phrase); found != theirs.orders[n].end())
        product += std::min(value, found->second) * found->second;
    sum += product / norm;
  }
  const double longer = ours.length - theirs.length;
  return std::exp(-longer * longer / (2 * kLengthSpread * kLengthSpread)) * sum / kLongestPhrase;
}

}  // namespace

Cider cider(const std::vector<std::vector<std::string>>& hypotheses,
            const std::vector<std::vector<std::vector<std::string>>>& references) {
  check(hypotheses.size() == references.size(), "cider: {} captions and references for {}; expected the same number",
        hypotheses.size(), references.size());
  check(!hypotheses.empty(), "cider: no captions; expected at least 1");
  for (size_t i = 0; i < references.size(); ++i)
    check(!references[i].empty(), "cider: caption {} has no reference; expected at least 1", i + 1);

  const Rarity rarity(references);
  Cider out;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const Caption ours(hypotheses[i], rarity);
    double sum = 0;
    for (const auto& words : references[i]) sum += similarity(ours, Caption(words, rarity));
    out.scores.push_back(10 * sum / static_cast<double>(references[i].size()));
    out.score += out.scores.back() / static_cast<double>(hypotheses.size());
  }
  return out;
}

}  // namespace mh
