// The per-thread stacks of scratch memory.
#include "multihead/base/scratch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "multihead/base/memory.h"
#include "multihead/base/out_of_memory.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace mh {

namespace {

constexpr size_t kGiant = size_t{64} << 20;
constexpr int64_t kMost = INT64_MAX / 4;  // bytes: room to round up

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kGuarded = true;
void close_bytes(void* data, size_t bytes) { __asan_poison_memory_region(data, bytes); }
void open_bytes(void* data, size_t bytes) { __asan_unpoison_memory_region(data, bytes); }
#else
constexpr bool kGuarded = false;
void close_bytes(void*, size_t) {}
void open_bytes(void*, size_t) {}
#endif

std::atomic<int64_t> held_now{0};
std::atomic<int64_t> held_peak{0};

void count_held(int64_t change) {
  const int64_t now = held_now.fetch_add(change, std::memory_order_relaxed) + change;
  int64_t peak = held_peak.load(std::memory_order_relaxed);
  while (now > peak && !held_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

constexpr size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

struct Chunk {
  char* data = nullptr;
  size_t size = 0;
};

Chunk make_chunk(size_t bytes) {
  const size_t size = round_up(bytes, kHugePage);
  Chunk chunk{static_cast<char*>(allocate_bytes(size)), size};
  close_bytes(chunk.data, size);
  count_held(static_cast<int64_t>(size));
  return chunk;
}

void free_chunk(const Chunk& chunk) {
  open_bytes(chunk.data, chunk.size);
  release_bytes(chunk.data);
  count_held(-static_cast<int64_t>(chunk.size));
}

// Chunks [0, current) are full, chunk `current` is taken up to `used`, those after it are free.
struct Stack {
  std::vector<Chunk> chunks;
  size_t current = 0;
  size_t used = 0;

  ~Stack() {
    for (const Chunk& chunk : chunks) free_chunk(chunk);
  }

  void* take(size_t bytes) {
    const size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
    const size_t needed = round_up(std::max<size_t>(bytes, 1), kCacheLine) + (kGuarded ? kCacheLine : 0);
    size_t begin = round_up(used, alignment);
    if (chunks.empty() || begin + needed > chunks[current].size) {
      enter_next(needed);
      begin = 0;
    }
    used = begin + needed;
    char* data = chunks[current].data + begin;
    if (kGuarded) {
      open_bytes(data, bytes);
      std::memset(data, 0xff, bytes);  // NaN: what relies on zeros shows
    }
    return data;
  }

  // Moves to a free chunk of that size; where there is none, the largest free one makes place for a new one, so the
  // thread never holds more chunks than it once used at the same time.
  void enter_next(size_t needed) {
    const size_t next = chunks.empty() || used == 0 ? current : current + 1;
    size_t best = chunks.size(), largest = chunks.size();
    for (size_t i = next; i < chunks.size(); ++i) {
      const bool fits = chunks[i].size >= needed;
      if (fits && (best == chunks.size() || chunks[i].size < chunks[best].size)) best = i;
      if (largest == chunks.size() || chunks[i].size > chunks[largest].size) largest = i;
    }
    if (best == chunks.size()) {
      if (largest < chunks.size()) {
        free_chunk(chunks[largest]);
        chunks.erase(chunks.begin() + static_cast<ptrdiff_t>(largest));
      }
      best = chunks.size();
      chunks.reserve(best + 1);
      chunks.push_back(make_chunk(needed));
    }
    std::swap(chunks[next], chunks[best]);
    current = next;
  }

  void go_back(size_t to_chunk, size_t to_used) {
    for (size_t i = to_chunk; i < chunks.size() && i <= current; ++i) {
      const size_t from = i == to_chunk ? to_used : 0;
      const size_t to = i == current ? used : chunks[i].size;
      close_bytes(chunks[i].data + from, to - from);
    }
    current = to_chunk;
    used = to_used;
    const size_t first_free = used == 0 ? current : current + 1;
    for (size_t i = chunks.size(); i > first_free; --i) {
      if (chunks[i - 1].size <= kGiant) continue;
      free_chunk(chunks[i - 1]);
      chunks.erase(chunks.begin() + static_cast<ptrdiff_t>(i - 1));
    }
  }
};

thread_local Stack stack;

}  // namespace

Scratch::Scratch() : mark_block_(stack.current), mark_used_(stack.used) {}

Scratch::~Scratch() { stack.go_back(mark_block_, mark_used_); }

void* Scratch::take_bytes(int64_t count, size_t each) {
  if (count < 0 || count > kMost / static_cast<int64_t>(each)) throw OutOfMemory("multihead", SIZE_MAX);
  return stack.take(static_cast<size_t>(count) * each);
}

ScratchUse scratch_use() {
  return {.now = held_now.load(std::memory_order_relaxed), .peak = held_peak.load(std::memory_order_relaxed)};
}

}  // namespace mh
