// The threads behind parallel_for: they spin for a while after a job, then sleep. Seen by base alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace mh::detail {

// The exception of the smallest index. Tasks start in ascending order, so all below one that throws have started: it is
// the same for any number of threads.
class Failure {
 public:
  void keep_current(int64_t index);
  // Rethrows what was kept, and forgets it.
  void rethrow();

 private:
  std::mutex lock_;
  int64_t index_ = 0;
  std::exception_ptr exception_;
};

// One run of parallel_for. Tasks are taken in ascending order by whoever is free; after one has thrown no more start.
struct Job {
  void (*task)(void* context, int64_t index) = nullptr;
  void* context = nullptr;
  int64_t count = 0;
  Failure* failure = nullptr;
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};

  void run_one(int64_t index);
  void work();
};

// Not thread safe: one caller at a time, which the owner's lock sees to.
class Pool {
 public:
  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Runs the tasks on the calling thread and up to `threads` - 1 workers. A worker that does not get a CPU before the
  // tasks have run out is not waited for. Throws: what a task threw.
  void run(int64_t count, void (*task)(void* context, int64_t index), void* context, int threads);

 private:
  // A cache line of its own: a caller's signal disturbs one worker only.
  struct alignas(64) Worker {
    std::atomic<uint32_t> signal{0};  // counts the jobs offered
    std::atomic<uint32_t> asleep{0};
    std::thread thread;
    int64_t number = 0;
  };

  void prepare(int threads);
  void place();
  void offer(int64_t workers);
  void finish();
  void serve(Worker& self);
  void wait_for_signal(Worker& self, uint32_t seen);
  void help();

  // All that a worker reads and writes to take part, in one cache line: with the tasks in lines of
  // their own a run took 1.3 us instead of 0.8.
  // state: kOpen while the job may be entered, kWaited where the caller sleeps until it is left, below them how many
  // workers are inside. The job is read inside only.
  static constexpr uint32_t kOpen = 1u << 31, kWaited = 1u << 30, kInside = kWaited - 1;
  struct alignas(64) Shared {
    std::atomic<uint32_t> state{0};
    Job job;
  };
  static_assert(sizeof(Shared) == 64);
  Shared shared_;

  alignas(64) std::atomic<bool> stop_{false};
  std::atomic<bool> spin_{true};
  int active_ = 0;  // workers in use; those past it sleep
  int threads_ = 0;
  std::deque<Worker> workers_;
  Failure failure_;
};

// Whether the calling thread runs a body of parallel_for.
bool& inside_body();
// The calling thread among a pool's: from 1 on; 0 where it is none of them.
int64_t& worker_number();

}  // namespace mh::detail
