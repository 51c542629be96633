// Fork and join over a few atomics: a run that both of two threads take part in costs 0.8 us while the worker spins and
// 20 us once it sleeps (AMD EPYC guest, two CPUs, shared with other work, 2026-11-15).
#include "multihead/base/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <vector>

#include "multihead/base/cpu_set.h"
#include "multihead/base/signals_blocked.h"

namespace mh::detail {

namespace {

// Calls in a row come microseconds apart; a core kept busy for longer than this is one taken from somebody else.
constexpr std::chrono::microseconds kSpin{80};

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` is no pause on most cores
#endif
}

// Whether `done` came true while spinning.
template <class Done>
bool spin_until(Done&& done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace

bool& inside_body() {
  thread_local bool inside = false;
  return inside;
}

int64_t& worker_number() {
  thread_local int64_t number = 0;
  return number;
}

void Failure::keep_current(int64_t index) {
  const std::lock_guard guard(lock_);
  if (exception_ && index_ < index) return;
  exception_ = std::current_exception();
  index_ = index;
}

void Failure::rethrow() {
  std::unique_lock guard(lock_);
  const std::exception_ptr first = std::move(exception_);
  exception_ = nullptr;
  guard.unlock();
  if (first) std::rethrow_exception(first);
}

void Job::run_one(int64_t index) {
  if (failed.load(std::memory_order_relaxed)) return;
  try {
    task(context, index);
  } catch (...) {
    failure->keep_current(index);
    failed.store(true, std::memory_order_relaxed);
  }
}

void Job::work() {
  for (int64_t i = next.fetch_add(1, std::memory_order_relaxed); i < count;
       i = next.fetch_add(1, std::memory_order_relaxed)) {
    run_one(i);
  }
}

Pool::~Pool() {
  stop_.store(true);
  for (Worker& worker : workers_) {
    worker.signal.fetch_add(1);
    futex_wake(worker.signal);
  }
  for (Worker& worker : workers_) worker.thread.join();
}

void Pool::run(int64_t count, void (*task)(void* context, int64_t index), void* context, int threads) {
  if (threads != threads_) prepare(threads);
  Job& job = shared_.job;
  job.task = task;
  job.context = context;
  job.count = count;
  job.failure = &failure_;
  job.next.store(0, std::memory_order_relaxed);
  job.failed.store(false, std::memory_order_relaxed);
  const int64_t workers = std::min<int64_t>(active_, count - 1);
  if (workers > 0) {
    shared_.state.store(kOpen, std::memory_order_release);
    offer(workers);
  }
  job.work();
  if (workers > 0) finish();
  if (job.failed.load(std::memory_order_relaxed)) failure_.rethrow();
}

void Pool::prepare(int threads) {
  {
    const SignalsBlocked blocked;
    while (static_cast<int>(workers_.size()) < threads - 1) {
      Worker& worker = workers_.emplace_back();
      worker.number = static_cast<int64_t>(workers_.size());
      try {
        worker.thread = std::thread([this, &worker] { serve(worker); });
      } catch (const std::system_error&) {  // no more threads to be had: fewer do the work
        workers_.pop_back();
        break;
      }
      pthread_setname_np(worker.thread.native_handle(), "mh-worker");
    }
  }
  active_ = std::min(threads - 1, static_cast<int>(workers_.size()));
  threads_ = threads;
  place();
}

// Pins each worker to a CPU of its own, none to the caller's: threads inherit the mask of the thread that made them,
// and two workers on one CPU wait for each other's time slices (8 ms measured). More threads than CPUs: neither pin nor
// spin.
void Pool::place() {
  std::vector<int> cpus = allowed_cpus();
  const bool roomy = threads_ <= static_cast<int>(cpus.size());
  spin_.store(roomy, std::memory_order_relaxed);
  if (roomy) {
    const auto mine = std::find(cpus.begin(), cpus.end(), sched_getcpu());
    if (mine != cpus.end()) std::rotate(cpus.begin(), mine, cpus.end());
  }
  for (int i = 0; i < active_; ++i) {
    std::thread& thread = workers_[static_cast<size_t>(i)].thread;
    run_on(thread, roomy ? std::vector<int>{cpus[static_cast<size_t>(i) + 1]} : cpus);
  }
}

// Sequentially consistent: signal, then read `asleep`, where a worker sets `asleep`, then reads the signal. So one of
// the two always sees the other.
void Pool::offer(int64_t workers) {
  for (int64_t i = 0; i < workers; ++i) workers_[static_cast<size_t>(i)].signal.fetch_add(1, std::memory_order_seq_cst);
  for (int64_t i = 0; i < workers; ++i) {
    Worker& worker = workers_[static_cast<size_t>(i)];
    if (worker.asleep.load(std::memory_order_seq_cst) != 0) futex_wake(worker.signal);
  }
}

void Pool::finish() {
  uint32_t state = shared_.state.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  const auto left = [&] { return ((state = shared_.state.load(std::memory_order_acquire)) & kInside) == 0; };
  if ((state & kInside) == 0) return;
  if (spin_.load(std::memory_order_relaxed) && spin_until(left)) return;
  state = shared_.state.fetch_or(kWaited, std::memory_order_acq_rel) | kWaited;
  while ((state & kInside) != 0) {
    futex_wait(shared_.state, state);
    state = shared_.state.load(std::memory_order_acquire);
  }
}

void Pool::serve(Worker& self) {
  inside_body() = true;
  worker_number() = self.number;
  uint32_t seen = 0;
  while (true) {
    wait_for_signal(self, seen);
    seen = self.signal.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    help();
  }
}

void Pool::wait_for_signal(Worker& self, uint32_t seen) {
  const auto signalled = [&] { return self.signal.load(std::memory_order_acquire) != seen; };
  if (spin_.load(std::memory_order_relaxed) && spin_until(signalled)) return;
  self.asleep.store(1, std::memory_order_seq_cst);
  while (self.signal.load(std::memory_order_seq_cst) == seen) futex_wait(self.signal, seen);
  self.asleep.store(0, std::memory_order_relaxed);
}

void Pool::help() {
  uint32_t state = shared_.state.load(std::memory_order_acquire);
  do {
    if ((state & kOpen) == 0) return;
  } while (
      !shared_.state.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel, std::memory_order_acquire));
  shared_.job.work();
  const uint32_t before = shared_.state.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kWaited) != 0 && (before & kInside) == 1) futex_wake(shared_.state);
}

}  // namespace mh::detail
