// Shuffle, sort windows by length, cut into batches, shuffle those.
#include "multihead/tasks/data/epoch_plan.h"

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

// An example beside its lengths, so that sorting touches no other memory.
struct Item {
  int64_t tokens, source, example;

  friend bool operator<(const Item& a, const Item& b) {
    return a.tokens != b.tokens ? a.tokens < b.tokens : a.source < b.source;
  }
};

}  // namespace

EpochPlan::EpochPlan(std::span<const ExampleLength> lengths, const OrderOptions& options, int64_t epoch) {
  std::vector<Item> items;
  items.reserve(lengths.size());
  for (const ExampleLength& each : lengths)
    items.push_back({each.tokens, each.source, static_cast<int64_t>(items.size())});
  Random random(options.seed, static_cast<uint64_t>(epoch));
  shuffle(items, random);

  const auto window = static_cast<size_t>(options.window);
  for (size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    end = begin + std::min(window, items.size() - begin);
    std::stable_sort(items.begin() + static_cast<int64_t>(begin), items.begin() + static_cast<int64_t>(end));
    int64_t tokens = 0;
    for (size_t i = begin; i < end; ++i) {
      if (i == begin || tokens + items[i].tokens > options.tokens_per_batch) {
        batches_.push_back({i, i});
        tokens = 0;
      }
      batches_.back().end = i + 1;
      tokens += items[i].tokens;
    }
  }
  shuffle(batches_, random);
  order_.reserve(items.size());
  for (const Item& item : items) order_.push_back(item.example);
}

}  // namespace mh::detail
