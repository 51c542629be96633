// The fence around a second device's memory, and the CPU's kernels behind it.
#include "tests/harness/host2.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "multihead/kernels/table.h"
#include "multihead/tensor/memory.h"

namespace mh::harness {

namespace {

// Blocks out of one run of addresses, which no one may touch unless it is open.
class Fenced {
 public:
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const size_t room = room_for(bytes);
    std::vector<void*>& ready = free_[room];
    if (!ready.empty()) {
      void* data = ready.back();
      ready.pop_back();
      return data;
    }
    if (base_ == nullptr) base_ = map();
    if (used_ + room > kRoom) std::abort();
    void* data = base_ + used_;
    used_ += room;
    if (open_ > 0) protect(PROT_READ | PROT_WRITE);
    return data;
  }
  void give(void* data, size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_[room_for(bytes)].push_back(data);
  }
  void open() {
    const std::lock_guard lock(mutex_);
    if (open_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    if (--open_ == 0) protect(PROT_NONE);
  }

 private:
  static constexpr size_t kRoom = size_t{8} << 30;

  // Few sizes: what is used stays small, and with it what opening and closing costs.
  static size_t room_for(size_t bytes) { return std::bit_ceil(std::max<size_t>(bytes, 64)); }

  static char* map() {
    void* data = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) std::abort();
    return static_cast<char*>(data);
  }
  void protect(int access) {
    if (used_ > 0 && mprotect(base_, used_, access) != 0) std::abort();
  }

  std::mutex mutex_;
  char* base_ = nullptr;
  size_t used_ = 0;
  int open_ = 0;
  std::map<size_t, std::vector<void*>> free_;
};

Fenced fence;
std::atomic<int64_t> calls{0};

struct Opened {
  Opened() { fence.open(); }
  ~Opened() { fence.close(); }
};

template <auto kKernel, class Args>
void run_inside(const Args& args, Queue& queue) {
  if (queue.device != kHost2) std::abort();
  ++calls;
  const Opened opened;
  (kernels::kernels_of(Device{}).*kKernel)(args, queue_of(Device{}));
}

template <auto kKernel, class Args>
void fill_in(kernels::Kernel<Args>& kernel) {
  if (kernels::kernels_of(Device{}).*kKernel) kernel.run = run_inside<kKernel, Args>;
}

constexpr Memory kMemory{
    .take = [](size_t bytes, Queue&) { return fence.take(bytes); },
    .give = [](void* data, size_t bytes, Queue&) { fence.give(data, bytes); },
    .copy =
        [](void* to, const void* from, size_t bytes, Queue&) {
          const Opened opened;
          memory_of(Device{}).copy(to, from, bytes, queue_of(Device{}));
        },
    .wait = [](Queue&) {},
    .convert =
        [](const View& to, const View& from, Queue&) {
          const Opened opened;
          memory_of(Device{}).convert(to, from, queue_of(Device{}));
        },
    .fill =
        [](const View& to, double value, Queue&) {
          const Opened opened;
          memory_of(Device{}).fill(to, value, queue_of(Device{}));
        },
};

}  // namespace

void bring_host2() {
  static kernels::Table table;
  table.rung = kernels::kernels_of(Device{}).rung;
  kernels::for_each_kernel([]<auto kKernel>() { fill_in<kKernel>(table.*kKernel); });
  kernels::use_table(Device::Kind::host2, &table);
  use_memory(Device::Kind::host2, &kMemory);
}

int64_t host2_calls() { return calls; }

}  // namespace mh::harness
