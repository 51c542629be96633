// Affinity masks of any width.
#include "multihead/base/cpu_set.h"

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <memory>

namespace mh {

namespace {

constexpr int kMostCpus = 1 << 16;

struct FreeMask {
  void operator()(cpu_set_t* mask) const { CPU_FREE(mask); }
};
using Mask = std::unique_ptr<cpu_set_t, FreeMask>;

}  // namespace

std::vector<int> allowed_cpus() {
  for (int width = CPU_SETSIZE; width <= kMostCpus; width *= 2) {  // the kernel refuses a mask narrower than its own
    const Mask mask(CPU_ALLOC(width));
    const size_t bytes = CPU_ALLOC_SIZE(width);
    if (!mask) return {};
    CPU_ZERO_S(bytes, mask.get());
    if (sched_getaffinity(0, bytes, mask.get()) != 0) {
      if (errno == EINVAL) continue;
      return {};
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < width; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, mask.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

void run_on(std::thread& thread, const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  const int width = cpus.back() + 1;
  const Mask mask(CPU_ALLOC(width));
  if (!mask) return;
  const size_t bytes = CPU_ALLOC_SIZE(width);
  CPU_ZERO_S(bytes, mask.get());
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, mask.get());
  pthread_setaffinity_np(thread.native_handle(), bytes, mask.get());
}

}  // namespace mh
