// parallel_for: who runs the tasks, and what becomes of their exceptions.
#include "multihead/base/parallel.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "multihead/base/cpu_set.h"
#include "multihead/base/error.h"
#include "multihead/base/pool.h"

namespace mh {

namespace {

using detail::inside_body;
using detail::Job;
using detail::Pool;

constexpr int kMostThreads = 1024;

// Plain globals without destructors: a thread that outlives main() may still call parallel_for.
std::atomic<int> wanted_threads{0};  // 0: not asked for yet
std::mutex pool_lock;
Pool* pool = nullptr;
bool pool_closed = false;
// Pools of the processes this one was forked from: their threads do not exist here.
Pool* inherited_pool = nullptr;

std::atomic<bool> has_executor{false};
std::mutex executor_lock;
Executor executor;

int default_threads() {
  const char* text = std::getenv("MH_THREADS");
  if (text != nullptr && *text != '\0') {
    int n = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, n);
    check(error == std::errc() && stop == end && n >= 1 && n <= kMostThreads,
          "threads: MH_THREADS is '{}'; expected a number from 1 to {}", text, kMostThreads);
    return n;
  }
  const int cpus = static_cast<int>(allowed_cpus().size());
  return cpus < 1 ? 1 : cpus > kMostThreads ? kMostThreads : cpus;
}

class InsideBody {
 public:
  InsideBody() : before_(inside_body()) { inside_body() = true; }
  ~InsideBody() { inside_body() = before_; }

 private:
  bool before_;
};

void run_on_foreign_thread(void* job, int64_t index) {
  const InsideBody inside;
  static_cast<Job*>(job)->run_one(index);
}

void close_pool() {
  if (inside_body()) return;  // exit() from within a body: its worker cannot wait for itself
  const std::lock_guard guard(pool_lock);
  pool_closed = true;
  delete pool;
  pool = nullptr;
}

void drop_pool_in_child() {
  new (&pool_lock) std::mutex;
  new (&executor_lock) std::mutex;
  if (pool != nullptr) inherited_pool = pool;
  pool = nullptr;
  inside_body() = false;
}

// Before there is a second thread: were it done with the first pool, a fork in that moment would leave the child with a
// lock of the C library, or of a sanitizer, that nobody opens.
[[maybe_unused]] const int forks_are_told = pthread_atfork(nullptr, nullptr, drop_pool_in_child);
[[maybe_unused]] const int pool_closes = std::atexit(close_pool);

// Under pool_lock.
Pool* open_pool() {
  if (pool == nullptr && !pool_closed) pool = new Pool;
  return pool;
}

bool run_on_executor(int64_t count, void (*task)(void*, int64_t), void* context) {
  if (!has_executor.load(std::memory_order_acquire)) return false;
  Executor now;
  {
    const std::lock_guard guard(executor_lock);
    now = executor;
  }
  if (now.run == nullptr) return false;
  detail::Failure failure;
  Job job{.task = task, .context = context, .count = count, .failure = &failure};
  now.run(now.self, count, run_on_foreign_thread, &job);
  failure.rethrow();
  return true;
}

// False where another caller has the pool: this one then works alone, it would only get in the other's way.
bool run_on_pool(int64_t count, void (*task)(void*, int64_t), void* context, int threads) {
  const std::unique_lock guard(pool_lock, std::try_to_lock);
  if (!guard.owns_lock()) return false;
  Pool* workers = open_pool();
  if (workers == nullptr) return false;
  const InsideBody inside;
  workers->run(count, task, context, threads);
  return true;
}

// Indices cut into runs of neighbours; anybody may take the next of any.
class NearTasks {
 public:
  static constexpr int64_t kMostParts = 64;

  NearTasks(int64_t count, int64_t parts) : count_(count), parts_(parts) {
    for (int64_t p = 0; p < parts; ++p) next_[p].at.store(begin(p), std::memory_order_relaxed);
  }

  // Those of part `mine`, counted past the last one from the first again, then what is left of the others.
  void run(int64_t mine, void (*task)(void*, int64_t), void* context) {
    for (int64_t n = 0; n < parts_; ++n) {
      const int64_t part = (mine + n) % parts_, end = begin(part + 1);
      for (int64_t i = 0; (i = next_[part].at.fetch_add(1, std::memory_order_relaxed)) < end;) task(context, i);
    }
  }

 private:
  struct alignas(64) Next {
    std::atomic<int64_t> at;
  };
  int64_t begin(int64_t part) const { return part * count_ / parts_; }

  int64_t count_, parts_;
  Next next_[kMostParts];
};

}  // namespace

int threads() {
  int n = wanted_threads.load(std::memory_order_relaxed);
  if (n != 0) return n;
  const int wanted = default_threads();
  return wanted_threads.compare_exchange_strong(n, wanted) ? wanted : n;
}

void set_threads(int n) {
  check(n >= 1 && n <= kMostThreads, "set_threads: {} threads; expected 1 to {}", n, kMostThreads);
  wanted_threads.store(n, std::memory_order_relaxed);
}

void set_executor(Executor next) {
  const std::lock_guard guard(executor_lock);
  executor = next;
  has_executor.store(next.run != nullptr, std::memory_order_release);
}

void detail::run_tasks(int64_t count, void (*task)(void* context, int64_t index), void* context) {
  if (count <= 0) return;
  if (count > 1 && !inside_body()) {
    if (run_on_executor(count, task, context)) return;
    const int n = threads();
    if (n > 1 && run_on_pool(count, task, context, n)) return;
  }
  const InsideBody inside;
  for (int64_t i = 0; i < count; ++i) task(context, i);
}

void detail::run_near_tasks(int64_t count, void (*task)(void* context, int64_t index), void* context) {
  const int64_t workers = std::min(int64_t{threads()}, count), parts = std::min(workers, NearTasks::kMostParts);
  if (workers <= 1 || inside_body()) return run_tasks(count, task, context);
  NearTasks tasks(count, parts);
  // A worker keeps its number; threads of a caller's executor have none but the order in which they come.
  const bool numbered = !has_executor.load(std::memory_order_acquire);
  parallel_for(workers, [&](int64_t n) { tasks.run(numbered ? worker_number() : n, task, context); });
}

}  // namespace mh
