// Histories through a recommender, some at a time.
#include "multihead/tasks/verbs/recommender.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/tasks/recommend.h"

namespace mh {

namespace {

constexpr size_t kHistoriesAskedAtOnce = 64;

}  // namespace

struct Recommender::Parts {
  LanguageModelFolder folder;
  DType compute;
  int32_t first;  // id of the first item

  // The best of `scores`, one for each id; those that may not come are -inf.
  std::vector<Recommendation> best(std::span<const float> scores, int64_t count) const {
    std::vector<int32_t> ids;
    float top = -std::numeric_limits<float>::infinity();
    for (auto id = static_cast<size_t>(first); id < scores.size(); ++id) {
      if (scores[id] == -std::numeric_limits<float>::infinity()) continue;
      ids.push_back(static_cast<int32_t>(id));
      top = std::max(top, scores[id]);
    }
    double sum = 0;
    for (const int32_t id : ids) sum += std::exp(double{scores[static_cast<size_t>(id)]} - top);
    const auto end = ids.begin() + std::min(count, static_cast<int64_t>(ids.size()));
    std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
      const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
      return x != y ? x > y : a < b;
    });
    std::vector<Recommendation> out;
    for (auto id = ids.begin(); id != end; ++id)
      out.push_back({.item = folder.tokenizer.token(*id),
                     .score = static_cast<float>(std::exp(double{scores[static_cast<size_t>(*id)]} - top) / sum)});
    return out;
  }
};

Recommender Recommender::load(const std::string& folder, DType compute) {
  LanguageModelFolder found = load_language_model(folder, kRecommend);
  found.model.pack(compute);
  const int32_t first = first_item(found.tokenizer);
  return Recommender(std::make_shared<Parts>(Parts{std::move(found), compute, first}));
}

std::vector<Recommendation> Recommender::operator()(std::span<const std::string> history,
                                                    const RecommendOptions& options) const {
  const std::vector<std::string> one[] = {{history.begin(), history.end()}};
  return (*this)(one, options).front();
}

std::vector<std::vector<Recommendation>> Recommender::operator()(std::span<const std::vector<std::string>> histories,
                                                                 const RecommendOptions& options) const {
  check(options.count >= 1, "Recommender: {} items are asked for; expected 1 or more", options.count);
  std::vector<std::vector<int32_t>> ids;
  for (const std::vector<std::string>& history : histories) {
    ids.emplace_back();
    for (const std::string& item : history)
      if (knows(item)) ids.back().push_back(*parts_->folder.tokenizer.id(item));
  }
  std::vector<std::vector<Recommendation>> out;
  for (size_t begin = 0; begin < ids.size(); begin += kHistoriesAskedAtOnce) {
    const auto some = std::span(ids).subspan(begin, std::min(kHistoriesAskedAtOnce, ids.size() - begin));
    Pass pass = Pass::inference(parts_->compute);
    const Tensor logits =
        next_item_logits(parts_->folder.model, std::vector<std::span<const int32_t>>(some.begin(), some.end()), pass);
    const auto width = static_cast<size_t>(logits.size(1));
    for (size_t n = 0; n < some.size(); ++n) {
      const float* row = logits.data<float>() + n * width;
      std::vector<float> scores(row, row + width);
      if (!options.seen)
        for (const int32_t id : some[n]) scores[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
      out.push_back(parts_->best(scores, options.count));
    }
  }
  return out;
}

bool Recommender::knows(std::string_view item) const {
  const std::optional<int32_t> id = parts_->folder.tokenizer.id(item);
  return id && *id >= parts_->first;
}

int64_t Recommender::items() const { return parts_->folder.tokenizer.size() - parts_->first; }

}  // namespace mh
