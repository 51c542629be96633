// One step of a beam, and the bound that lets it stop.
#include "multihead/generate/beam.h"

#include <algorithm>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/generate/check_options.h"

namespace mh::detail {

Beam::Beam(const SearchOptions& options, int64_t limit, const std::vector<int32_t>& ends)
    : options_(options),
      limit_(limit),
      ends_(ends),
      room_(static_cast<size_t>(options.stop == Stop::heuristic ? options.beam : options.n_best)),
      live_{{0, 0, TokenTree::kRoot, 0.0}} {}

// The candidates in descending order, as many as can matter: of each hypothesis at most as many end as there are ends.
void Beam::gather(const float* log_p, const int32_t* tokens, int64_t k) {
  candidates_.clear();
  for (size_t n = 0; n < live_.size(); ++n) {
    const int64_t row = static_cast<int64_t>(n) * k;
    for (int64_t i = row; i < row + k; ++i) {
      if (tokens[i] < 0 || !(log_p[i] > -std::numeric_limits<float>::infinity())) break;
      candidates_.push_back({live_[n].sum + log_p[i], static_cast<int32_t>(n), tokens[i], log_p[i]});
    }
  }
  const size_t most = (1 + std::max<size_t>(1, ends_.size())) * static_cast<size_t>(options_.beam);
  const size_t wanted = std::min(candidates_.size(), most);
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(wanted), candidates_.end(),
                    [](const Candidate& a, const Candidate& b) {
                      if (a.sum != b.sum) return a.sum > b.sum;
                      return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
                    });
  candidates_.resize(wanted);
}

void Beam::keep(double sum, int32_t node) {
  const double score = sum / divisor(options_.penalty, length_);
  const auto place = std::find_if(kept_.begin(), kept_.end(), [&](const Finished& f) { return f.score < score; });
  kept_.insert(place, {score, node});
  if (kept_.size() > room_) kept_.pop_back();
}

// Sums only fall and the divisor grows or falls steadily: the best that can become of a hypothesis is its sum at the
// longest length, or, where the divisor falls, at the one it has. The heuristic always takes the one it has.
bool Beam::is_settled() const {
  if (kept_.size() < room_) return false;
  if (options_.stop == Stop::heuristic || divisor(options_.penalty, 2) < divisor(options_.penalty, 1))
    return live_.front().sum / divisor(options_.penalty, length_) <= kept_.back().score;
  return live_.front().sum / divisor(options_.penalty, limit_) <= kept_.back().score;
}

// Greedy search ends with the first hypothesis that does.
bool Beam::is_done() const {
  const bool counts = options_.stop == Stop::first || options_.stop == Stop::full || options_.beam == 1;
  if (counts && finished_ >= most_finished(options_)) return true;
  const bool may_stop = options_.early_stop || options_.stop == Stop::heuristic;
  return !live_.empty() && may_stop && is_settled();
}

void Beam::advance(const float* log_p, const int32_t* tokens, int64_t k) {
  gather(log_p, tokens, k);
  if (candidates_.empty()) {
    if (tokens[0] < 0 || length_ == 0) fail_without_scores("search");
    // The rules let no token follow: what is written stays.
    for (const Live& hypothesis : live_) keep(hypothesis.sum, hypothesis.node);
    live_.clear();
    return;
  }
  ++length_;
  next_.clear();
  const size_t beam = static_cast<size_t>(options_.beam);
  for (size_t rank = 0; rank < candidates_.size() && next_.size() < beam; ++rank) {
    const Candidate& c = candidates_[rank];
    const bool ends = std::find(ends_.begin(), ends_.end(), c.token) != ends_.end();
    if (ends && rank >= beam) continue;
    const int32_t node = tree_.add(live_[static_cast<size_t>(c.parent)].node, c.token, c.log_p);
    if (ends) {
      keep(c.sum, node);
      ++finished_;
    } else {
      next_.push_back({c.parent, c.token, node, c.sum});
    }
  }
  live_.swap(next_);
  const bool done = is_done();
  if (length_ == limit_ && (!done || options_.stop == Stop::full))
    for (const Live& hypothesis : live_) keep(hypothesis.sum, hypothesis.node);
  if (done || length_ == limit_) live_.clear();
}

std::vector<Hypothesis> Beam::results() const {
  std::vector<Hypothesis> out;
  for (const Finished& finished : kept_) {
    if (static_cast<int64_t>(out.size()) == options_.n_best) break;
    out.push_back(tree_.hypothesis(finished.node, ends_));
    out.back().score = finished.score;
  }
  return out;
}

}  // namespace mh::detail
