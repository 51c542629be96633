// Shuffle, sort windows by length, cut into batches, shuffle those.
#include "multihead/tasks/epoch_plan.h"

#include <algorithm>
#include <utility>

#include "multihead/base/random.h"

namespace mh::detail {

namespace {

// Fisher and Yates.
template <class T>
void shuffle(std::vector<T>& items, Random& random) {
  for (size_t i = items.size(); i-- > 1;)
    std::swap(items[i], items[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
}

// A pair beside its lengths, so that sorting touches no other memory.
struct Item {
  uint64_t target, source;
  int64_t pair;

  friend bool operator<(const Item& a, const Item& b) {
    return a.target != b.target ? a.target < b.target : a.source < b.source;
  }
};

}  // namespace

EpochPlan::EpochPlan(const Dataset& data, const PairBatchOptions& options, int64_t epoch) {
  std::vector<Item> items;
  items.reserve(static_cast<size_t>(data.size()));
  for (int64_t i = 0; i < data.size(); ++i) items.push_back({data.target(i).size(), data.source(i).size(), i});
  Random random(options.seed, static_cast<uint64_t>(epoch));
  shuffle(items, random);

  const auto window = static_cast<size_t>(options.window), most = static_cast<size_t>(options.tokens_per_batch);
  for (size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    end = begin + std::min(window, items.size() - begin);
    std::stable_sort(items.begin() + static_cast<int64_t>(begin), items.begin() + static_cast<int64_t>(end));
    size_t tokens = 0;
    for (size_t i = begin; i < end; ++i) {
      if (i == begin || tokens + items[i].target + 1 > most) {
        batches_.push_back({i, i});
        tokens = 0;
      }
      batches_.back().end = i + 1;
      tokens += items[i].target + 1;
    }
  }
  shuffle(batches_, random);
  order_.reserve(items.size());
  for (const Item& item : items) order_.push_back(item.pair);
}

}  // namespace mh::detail
