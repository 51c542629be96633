// Scores of all items for one history after the other, and ranks in them.
#include "multihead/tasks/item_ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "multihead/metrics/ranking.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

constexpr size_t kHistoriesAtOnce = 64;
constexpr size_t kItemsThatSpeak = 3;  // of a history, for kNN
constexpr int64_t kPlaces = 10;

double log_sum_exp(std::span<const float> x) {
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const float each : x) sum += std::exp(each - top);
  return top + std::log(sum);
}

// Who had what, and the cosines of an item with those that stand beside it in a history.
class Neighbours {
 public:
  using Cosines = std::vector<std::pair<int32_t, float>>;

  Neighbours(std::span<const LeftOut> left_out, const Catalogue& catalogue)
      : users_of_(static_cast<size_t>(catalogue.end)) {
    for (const LeftOut& one : left_out) {
      baskets_.emplace_back(one.before.begin(), one.before.end());
      std::sort(baskets_.back().begin(), baskets_.back().end());
      baskets_.back().erase(std::unique(baskets_.back().begin(), baskets_.back().end()), baskets_.back().end());
      for (const int32_t item : baskets_.back())
        users_of_[static_cast<size_t>(item)].push_back(static_cast<int32_t>(baskets_.size()) - 1);
    }
  }

  const Cosines& of(int32_t item) {
    const auto [at, is_new] = known_.try_emplace(item);
    if (!is_new) return at->second;
    std::unordered_map<int32_t, int64_t> together;
    for (const int32_t user : users_of_[static_cast<size_t>(item)])
      for (const int32_t other : baskets_[static_cast<size_t>(user)]) ++together[other];
    for (const auto& [other, count] : together)
      at->second.emplace_back(other,
                              static_cast<float>(static_cast<double>(count) / std::sqrt(had(item) * had(other))));
    return at->second;
  }

 private:
  double had(int32_t item) const { return static_cast<double>(users_of_[static_cast<size_t>(item)].size()); }

  std::vector<std::vector<int32_t>> baskets_, users_of_;
  std::unordered_map<int32_t, Cosines> known_;
};

}  // namespace

Tensor next_item_logits(const DecoderOnly& model, std::span<const std::span<const int32_t>> histories, Pass& pass) {
  const auto longest = static_cast<size_t>(model.config().max_length);
  std::vector<std::vector<int32_t>> ids;
  std::vector<int32_t> last;
  int32_t rows = 0;
  for (const std::span<const int32_t> history : histories) {
    std::vector<int32_t>& read = ids.emplace_back();
    if (history.size() < longest) read.push_back(model.config().begin);
    const auto tail = history.last(std::min(history.size(), longest));
    read.insert(read.end(), tail.begin(), tail.end());
    last.push_back((rows += static_cast<int32_t>(read.size())) - 1);
  }
  const Tensor hidden = model.hidden(token_batch(ids), pass);
  return model.logits(gather(hidden, tensor<int32_t>(last, {static_cast<int64_t>(last.size())})));
}

int64_t unseen_rank(std::span<const float> scores, const LeftOut& one, const Catalogue& catalogue) {
  std::vector<float> open(scores.begin() + catalogue.first, scores.begin() + catalogue.end);
  const float own = open[static_cast<size_t>(one.item - catalogue.first)];
  for (const int32_t seen : one.before)
    open[static_cast<size_t>(seen - catalogue.first)] = -std::numeric_limits<float>::infinity();
  open[static_cast<size_t>(one.item - catalogue.first)] = own;
  return rank_of(open, static_cast<size_t>(one.item - catalogue.first));
}

ModelRanks model_ranks(const DecoderOnly& model, std::span<const LeftOut> left_out, const Catalogue& catalogue,
                       DType compute) {
  ModelRanks out;
  for (size_t begin = 0; begin < left_out.size(); begin += kHistoriesAtOnce) {
    const auto some = left_out.subspan(begin, std::min(kHistoriesAtOnce, left_out.size() - begin));
    std::vector<std::span<const int32_t>> histories;
    for (const LeftOut& one : some) histories.push_back(one.before);
    Pass pass = Pass::inference(compute);
    const Tensor logits = next_item_logits(model, histories, pass);
    for (size_t n = 0; n < some.size(); ++n) {
      const auto width = static_cast<size_t>(logits.size(1));
      const std::span<const float> scores(logits.data<float>() + n * width, width);
      out.ranks.push_back(unseen_rank(scores, some[n], catalogue));
      out.nats += log_sum_exp(scores) - scores[static_cast<size_t>(some[n].item)];
    }
  }
  return out;
}

std::vector<int64_t> popularity_ranks(std::span<const LeftOut> left_out, const Catalogue& catalogue) {
  std::vector<float> counts(static_cast<size_t>(catalogue.end));
  for (const LeftOut& one : left_out)
    for (const int32_t item : one.before) ++counts[static_cast<size_t>(item)];
  std::vector<int64_t> out;
  for (const LeftOut& one : left_out) out.push_back(unseen_rank(counts, one, catalogue));
  return out;
}

std::vector<int64_t> neighbour_ranks(std::span<const LeftOut> left_out, const Catalogue& catalogue) {
  Neighbours neighbours(left_out, catalogue);
  std::vector<int64_t> out;
  for (const LeftOut& one : left_out) {
    std::vector<float> scores(static_cast<size_t>(catalogue.end));
    for (const int32_t item : one.before.last(std::min(kItemsThatSpeak, one.before.size())))
      for (const auto& [other, cosine] : neighbours.of(item)) scores[static_cast<size_t>(other)] += cosine;
    out.push_back(unseen_rank(scores, one, catalogue));
  }
  return out;
}

Metrics metrics_of_ranks(std::span<const int64_t> ranks) {
  return {{"ndcg@10", 100 * ndcg(ranks, kPlaces)}, {"hr@10", 100 * hit_rate(ranks, kPlaces)}};
}

}  // namespace mh
