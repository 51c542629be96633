// Work on several cores: one loop, on our own pool or on the caller's executor.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

namespace mh {

// How many threads parallel_for uses at most, the calling one included. Starts as the number of CPUs the process
// may run on (its affinity mask), or MH_THREADS where that is set.
int threads();
// Throws: invalid_argument unless 1 <= n <= 1024.
void set_threads(int n);

// A caller's executor: runs task(context, i) for each i in [0, count), on any threads, and returns when all are done.
// Tasks are handed out in ascending order: task i may wait for a smaller one that has started, never for a larger one.
struct Executor {
  void (*run)(void* self, int64_t count, void (*task)(void* context, int64_t index), void* context) = nullptr;
  void* self = nullptr;
};
// An executor whose `run` is null gives the work back to our own pool.
void set_executor(Executor executor);

namespace detail {
void run_tasks(int64_t count, void (*task)(void* context, int64_t index), void* context);
void run_near_tasks(int64_t count, void (*task)(void* context, int64_t index), void* context);
}  // namespace detail

// body(i) for each i in [0, count), in ascending order of start, on up to threads() threads; returns when all are done.
// Called inside a body it runs on the calling thread alone. What the bodies compute must not depend on the number of
// threads: the work is cut by sizes. An exception thrown by a body is rethrown here after the others have ended.
template <class Body>
void parallel_for(int64_t count, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::run_tasks(
      count, [](void* context, int64_t index) { (*static_cast<Plain*>(context))(index); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// The same for bodies that wait for no other, in no order: a thread begins with a run of neighbouring indices, the same
// one from call to call, so that it finds rows in its own cache that it wrote in the call before; who is done helps the
// others.
template <class Body>
void parallel_near(int64_t count, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::run_near_tasks(
      count, [](void* context, int64_t index) { (*static_cast<Plain*>(context))(index); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace mh
