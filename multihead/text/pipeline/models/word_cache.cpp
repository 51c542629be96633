// The caches of a thread: of the models that it used last.
#include "multihead/text/pipeline/models/word_cache.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace mh::detail {
namespace {

constexpr size_t kModels = 4;  // a thread keeps 1 MiB for each

}  // namespace

WordCache& WordCache::of(uint64_t model) {
  thread_local std::vector<std::pair<uint64_t, std::unique_ptr<WordCache>>> caches;
  const auto found = std::find_if(caches.begin(), caches.end(), [&](const auto& one) { return one.first == model; });
  if (found == caches.begin() && found != caches.end()) return *found->second;
  if (found != caches.end()) {
    std::rotate(caches.begin(), found, found + 1);
  } else {
    if (caches.size() == kModels) caches.pop_back();
    caches.emplace(caches.begin(), model, std::make_unique<WordCache>());
  }
  return *caches.front().second;
}

uint64_t WordCache::next_model() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace mh::detail
