// The threads behind parallel_for: they spin for a while after a job, then sleep. Seen by base alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

namespace mh::detail {

// One run of parallel_for. Tasks are taken in ascending order by whoever is free.
struct Job {
  void (*task)(void* context, int64_t index) = nullptr;
  void* context = nullptr;
  int64_t count = 0;
  alignas(64) std::atomic<int64_t> next{0};

  void work() {
    for (int64_t i = next.fetch_add(1, std::memory_order_relaxed); i < count;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      task(context, i);
    }
  }
};

// Not thread safe: one caller at a time, which the owner's lock sees to.
class Pool {
 public:
  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Runs the job on the calling thread and up to `threads` - 1 workers; tasks must not throw. A worker that does not
  // get a CPU before the tasks have run out is not waited for.
  void run(Job& job, int threads);

 private:
  // A cache line of its own: a caller's signal disturbs one worker only.
  struct alignas(64) Worker {
    std::atomic<uint32_t> signal{0};  // counts the jobs offered
    std::atomic<uint32_t> asleep{0};
    std::thread thread;
  };

  void prepare(int threads);
  void place();
  void offer(int64_t workers);
  void finish();
  void serve(Worker& self);
  void wait_for_signal(Worker& self, uint32_t seen);
  void help();

  // state_: kOpen while a job may be entered, kWaited where the caller sleeps until it is left, below them how many
  // workers are inside. job_ is read inside only.
  static constexpr uint32_t kOpen = 1u << 31, kWaited = 1u << 30, kInside = kWaited - 1;
  alignas(64) std::atomic<uint32_t> state_{0};
  Job* job_ = nullptr;

  alignas(64) std::atomic<bool> stop_{false};
  std::atomic<bool> spin_{true};
  int active_ = 0;  // workers in use; those past it sleep
  int threads_ = 0;
  std::deque<Worker> workers_;
};

// Whether the calling thread runs a body of parallel_for.
bool& inside_body();

}  // namespace mh::detail
