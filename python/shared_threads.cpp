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

std::mutex busy;
std::atomic<bool> forked{false};  // OpenMP's threads do not exist in a child, and it does not know

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

void run(void* parallel, int64_t count, void (*task)(void* context, int64_t index), void* context) {
  Work work{task, context, count};
  const auto wanted = static_cast<unsigned>(std::min<int64_t>(threads(), count));
  // Where another caller has the threads this one works alone: it would only get in the other's way.
  const std::unique_lock guard(busy, std::try_to_lock);
  if (wanted <= 1 || forked || !guard.owns_lock()) return take_tasks(&work);
  reinterpret_cast<Parallel>(parallel)(take_tasks, &work, wanted, 0);
}

bool share_threads(bool on) {
  void* parallel = on ? dlsym(RTLD_DEFAULT, "GOMP_parallel") : nullptr;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forked = true; });
  set_executor({parallel && registered == 0 ? run : nullptr, parallel});
  return parallel != nullptr;
}

}  // namespace

void bind_shared_threads(nb::module_& m) {
  m.def("share_threads", share_threads, "on"_a,
        "Whether work runs on the OpenMP threads of this process from now on; False where it has none.");
}

}  // namespace mh::python
