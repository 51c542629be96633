// Drawing one token, and one sentence after it.
#include "multihead/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "multihead/base/random.h"
#include "multihead/generate/check_options.h"

namespace mh::detail {

namespace {

struct Weight {
  double p;  // relative to the most probable token
  int32_t token;
  // The order of a heap whose top is the most probable, of equals the smaller token.
  bool operator<(const Weight& other) const { return p != other.p ? p < other.p : token > other.token; }
};

double total(const std::vector<Weight>& weights) {
  return std::accumulate(weights.begin(), weights.end(), 0.0, [](double sum, const Weight& w) { return sum + w.p; });
}

// The tokens that top_k, top_p and min_p leave, most probable first.
std::vector<Weight> chosen(const SamplingOptions& o, std::vector<Weight> all) {
  std::make_heap(all.begin(), all.end());
  std::vector<Weight> out;
  const auto take = [&] {
    std::pop_heap(all.begin(), all.end());
    out.push_back(all.back());
    all.pop_back();
  };
  double mass = total(all);
  if (o.top_k > 0) {
    while (!all.empty() && static_cast<int64_t>(out.size()) < o.top_k) take();
    all = std::move(out);  // descending: a heap already
    out.clear();
    mass = total(all);
  }
  double taken = 0;
  while (!all.empty() && (out.empty() || taken < o.top_p * mass) && all.front().p >= o.min_p) {
    take();
    taken += out.back().p;
  }
  return out;
}

double uniform(const SamplingOptions& o, uint64_t sentence, int64_t sample, int64_t step) {
  const uint64_t group = static_cast<uint64_t>(sample) << 32 | static_cast<uint64_t>(step);
  const auto words = random_bits(o.seed, group, sentence);
  return static_cast<double>((uint64_t{words[0]} << 32 | words[1]) >> 11) * 0x1p-53;
}

}  // namespace

Drawn draw(const SamplingOptions& o, const float* logits, int64_t vocabulary, double u) {
  float top = -std::numeric_limits<float>::infinity();
  bool numbers = true;
  for (int64_t v = 0; v < vocabulary; ++v) {
    numbers = numbers && !std::isnan(logits[v]);
    top = std::max(top, logits[v]);
  }
  if (!numbers || !std::isfinite(top)) fail_without_scores("sample");
  std::vector<Weight> weights;
  weights.reserve(static_cast<size_t>(vocabulary));
  double sum = 0;  // at temperature 1
  for (int64_t v = 0; v < vocabulary; ++v) {
    const double below = static_cast<double>(logits[v]) - top;
    sum += std::exp(below);
    weights.push_back({std::exp(below / o.temperature), static_cast<int32_t>(v)});
  }
  if (o.top_k > 0 || o.top_p < 1 || o.min_p > 0) weights = chosen(o, std::move(weights));

  double left = u * total(weights);
  auto at = weights.begin();
  while (at + 1 != weights.end() && left >= at->p) left -= (at++)->p;
  while (at->p == 0) --at;  // past the end by rounding: never a token that may not be
  return {at->token, static_cast<float>(logits[at->token] - top - std::log(sum))};
}

Sampler::Sampler(const SamplingOptions& options, uint64_t sentence, int64_t limit, const std::vector<int32_t>& ends)
    : options_(options),
      sentence_(sentence),
      limit_(limit),
      ends_(ends),
      live_{{0, 0, TokenTree::kRoot, 0.0}},
      stopped_(static_cast<size_t>(options.samples), TokenTree::kRoot) {}

void Sampler::advance(const float* logits, int64_t vocabulary) {
  if (length_ == 0) {  // all samples begin with the one row
    live_.resize(static_cast<size_t>(options_.samples), live_.front());
    samples_.resize(live_.size());
    std::iota(samples_.begin(), samples_.end(), 0);
  }
  next_.clear();
  next_samples_.clear();
  for (size_t n = 0; n < live_.size(); ++n) {
    const int64_t row = length_ == 0 ? 0 : static_cast<int64_t>(n);
    const double u = uniform(options_, sentence_, samples_[n], length_);
    const auto [token, log_p] = draw(options_, logits + row * vocabulary, vocabulary, u);
    const int32_t node = tree_.add(live_[n].node, token, log_p);
    stopped_[static_cast<size_t>(samples_[n])] = node;
    if (std::find(ends_.begin(), ends_.end(), token) != ends_.end()) continue;
    next_.push_back({static_cast<int32_t>(row), token, node, live_[n].sum + log_p});
    next_samples_.push_back(samples_[n]);
  }
  live_.swap(next_);
  samples_.swap(next_samples_);
  if (++length_ == limit_) live_.clear();
}

std::vector<Hypothesis> Sampler::results() const {
  std::vector<Hypothesis> out;
  for (const int32_t node : stopped_) {
    out.push_back(tree_.hypothesis(node, ends_));
    for (const float log_p : out.back().token_scores) out.back().score += log_p;
  }
  return out;
}

}  // namespace mh::detail
