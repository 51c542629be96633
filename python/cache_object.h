// A KVCache that several threads of Python may hold: reading is shared, growing is not.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <vector>

#include "multihead/ops/attention/kv_cache.h"

namespace mh::python {

// Every method locks, so none may be called under the GIL where it could wait for a thread that wants the GIL.
class CacheObject {
 public:
  explicit CacheObject(const KVCacheOptions& options) : cache_(options) {}

  AttentionResult attend(const Tensor& q, const AttentionOptions& options) const {
    const std::shared_lock lock(mutex_);
    return attention(q, cache_, options);
  }
  Explanation explain(const Tensor& q, const AttentionOptions& options) const {
    const std::shared_lock lock(mutex_);
    return mh::explain(q, cache_, options);
  }
  template <class F>
  auto read(F&& f) const {
    const std::shared_lock lock(mutex_);
    return f(cache_);
  }
  template <class F>
  void change(F&& f) {
    const std::unique_lock lock(mutex_);
    f(cache_);
  }

 private:
  KVCache cache_;
  mutable std::shared_mutex mutex_;
};

}  // namespace mh::python
