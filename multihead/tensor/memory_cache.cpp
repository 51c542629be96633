// Size classes of blocks, each with a list of those that lie ready.
#include "multihead/tensor/memory_cache.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <vector>

#include "multihead/base/memory.h"
#include "multihead/base/out_of_memory.h"

namespace mh {

namespace {

// Below this malloc is as good. A sanitizer must see every block end.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kSmallest = ~size_t{0};
#else
constexpr size_t kSmallest = 1024;
#endif
constexpr int kParts = 8;  // classes between a power of two and the next
// Kept beyond the most ever in use: a quarter. With none, blocks of one class gave way to those of another in every
// step and came back by page faults (a training step of 7.6 M parameters on Zen 4: 5 % of its time in f32 and bf16,
// and, for the holes they left, 21 and 34 MB more at the peak).
constexpr int64_t kSpare = 4;
// A class nobody has asked for in so many requests gives way to one in use: ten steps of training. Sooner would make
// classes that take turns throw one another out.
constexpr int64_t kStale = 10000;

struct Class {
  size_t index, bytes;
};

// The smallest class that holds `bytes`.
Class class_of(size_t bytes) {
  const int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes <= 2^(power + 1)
  const size_t base = size_t{1} << power, part = base / kParts;
  const size_t n = (bytes - base + part - 1) / part;
  return {static_cast<size_t>(power) * kParts + n - 1, base + n * part};
}

// Of a block of the class.
size_t bytes_of(size_t index) {
  const size_t base = size_t{1} << index / kParts;
  return base + (index % kParts + 1) * (base / kParts);
}

class Cache {
 public:
  void* take(size_t bytes) {
    const Class c = class_of(bytes);
    {
      const std::lock_guard lock(mutex_);
      use_.in_use += static_cast<int64_t>(c.bytes);
      asked_[c.index] = ++requests_;
      std::vector<void*>& ready = ready_[c.index];
      if (!ready.empty()) {
        void* data = ready.back();
        ready.pop_back();
        use_.kept -= static_cast<int64_t>(c.bytes);
        use_.peak = std::max(use_.peak, use_.in_use);
        return data;
      }
    }
    void* data = nullptr;
    try {
      data = fresh(c.bytes);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      use_.in_use -= static_cast<int64_t>(c.bytes);
      throw;
    }
    const std::lock_guard lock(mutex_);
    use_.peak = std::max(use_.peak, use_.in_use);
    return data;
  }

  void give(void* data, size_t bytes) {
    const Class c = class_of(bytes);
    {
      const std::lock_guard lock(mutex_);
      use_.in_use -= static_cast<int64_t>(c.bytes);
      if (!fits(c)) drop_stale();
      if (fits(c)) {
        ready_[c.index].push_back(data);
        use_.kept += static_cast<int64_t>(c.bytes);
        return;
      }
    }
    release_bytes(data);
  }

  void release() {
    const std::lock_guard lock(mutex_);
    for (size_t n = 0; n < ready_.size(); ++n) drop(n);
  }

  MemoryUse use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }

  std::mutex& mutex() { return mutex_; }

 private:
  void* fresh(size_t bytes) {
    try {
      return allocate_bytes(bytes);
    } catch (const OutOfMemory&) {
      release();
      return allocate_bytes(bytes);
    }
  }

  bool fits(const Class& c) const {
    return use_.in_use + use_.kept + static_cast<int64_t>(c.bytes) <= use_.peak + use_.peak / kSpare;
  }

  void drop(size_t index) {
    for (void* data : ready_[index]) release_bytes(data);
    use_.kept -= static_cast<int64_t>(ready_[index].size() * bytes_of(index));
    ready_[index].clear();
  }

  void drop_stale() {
    for (size_t n = 0; n < ready_.size(); ++n) {
      if (!ready_[n].empty() && requests_ - asked_[n] > kStale) drop(n);
    }
  }

  std::mutex mutex_;
  int64_t requests_ = 0;
  std::array<int64_t, size_t{64} * kParts> asked_{};  // the last request for each class
  std::array<std::vector<void*>, size_t{64} * kParts> ready_;
  MemoryUse use_;
};

// Never destroyed: tensors of static life end after everything else. A child of fork finds the lock open.
Cache& cache() {
  static Cache& only = *[] {
    auto* made = new Cache;
    pthread_atfork([] { cache().mutex().lock(); }, [] { cache().mutex().unlock(); }, [] { cache().mutex().unlock(); });
    return made;
  }();
  return only;
}

}  // namespace

void* take_bytes(size_t bytes) {
  return bytes < kSmallest || bytes > SIZE_MAX / 4 ? allocate_bytes(bytes) : cache().take(bytes);
}

void give_bytes(void* data, size_t bytes) {
  if (bytes < kSmallest) {
    release_bytes(data);
  } else {
    cache().give(data, bytes);
  }
}

void release_kept_memory() { cache().release(); }

MemoryUse memory_use() { return cache().use(); }

}  // namespace mh
