// Our work on the OpenMP threads PyTorch already has. With two pools on the same cores each waits for the other's
// spinning threads: eight heads, T 2048, right after a call of PyTorch took 84 ms on our own and 43 ms on shared
// threads (Zen 4, two cores, November 2026).
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "multihead/base/parallel.h"
#include "python/bindings.h"

namespace mh::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// What a compiler makes of `#pragma omp parallel`; GNU's and LLVM's runtimes both have it.
using Parallel = void (*)(void (*body)(void*), void* data, unsigned threads, unsigned flags);

using Number = int (*)();
using Pause = int (*)(int kind);
constexpr int kPauseHard = 2;  // omp_pause_hard

std::mutex busy;
std::atomic<Number> most_threads{nullptr};  // omp_get_max_threads
std::atomic<Pause> pause_threads{nullptr};  // omp_pause_resource_all
std::atomic<bool> ended_before_fork{false};
std::atomic<bool> forked{false};  // with OpenMP's threads: they do not exist in a child, and it does not know

struct Work {
  void (*task)(void* context, int64_t index);
  void* context;
  int64_t count;
  std::atomic<int64_t> next{0};
};

void take_tasks(void* data) {
  auto& work = *static_cast<Work*>(data);
  for (int64_t index; (index = work.next.fetch_add(1, std::memory_order_relaxed)) < work.count;)
    work.task(work.context, index);
}

// torch.set_num_threads speaks to the OpenMP of the thread it is called on; other threads hear of it when they ask.
int threads_of_torch() {
  thread_local bool told = false;
  if (!told) {
    told = true;
    const nb::gil_scoped_acquire held;
    try {
      nb::module_::import_("torch").attr("get_num_threads")();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("multihead: torch.get_num_threads");
    }
  }
  return most_threads.load()();
}

// OpenMP's threads end before a fork and start again at the next call: a child that inherits them waits for ever for
// threads that it does not have, in PyTorch's own work too.
void before_fork() {
  const Pause pause = pause_threads;
  ended_before_fork = pause && pause(kPauseHard) == 0;
}

void in_child() { forked = forked || !ended_before_fork; }

void run(void* parallel, int64_t count, void (*task)(void* context, int64_t index), void* context) {
  Work work{task, context, count};
  const auto wanted = static_cast<unsigned>(std::min<int64_t>({threads(), threads_of_torch(), count}));
  // Where another caller has the threads this one works alone: it would only get in the other's way.
  const std::unique_lock guard(busy, std::try_to_lock);
  if (wanted <= 1 || forked || !guard.owns_lock()) return take_tasks(&work);
  reinterpret_cast<Parallel>(parallel)(take_tasks, &work, wanted, 0);
}

bool share_threads(bool on) {
  void* parallel = on ? dlsym(RTLD_DEFAULT, "GOMP_parallel") : nullptr;
  most_threads = reinterpret_cast<Number>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  pause_threads = on ? reinterpret_cast<Pause>(dlsym(RTLD_DEFAULT, "omp_pause_resource_all")) : nullptr;
  static const int registered = pthread_atfork(before_fork, nullptr, in_child);
  const bool works = parallel && most_threads.load() && registered == 0;
  set_executor({works ? run : nullptr, parallel});
  return works;
}

}  // namespace

void bind_shared_threads(nb::module_& m) {
  m.def("share_threads", share_threads, "on"_a,
        "Whether work runs on the OpenMP threads of this process from now on; False where it has none.");
}

}  // namespace mh::python
