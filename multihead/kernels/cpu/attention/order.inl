// How tasks are found; and sums that several of them share, added in one order: a task waits for the smaller ones that
// add before it. Tasks start in ascending order, so the one waited for is running or done, and waiting ends.
#pragma once

// The last n < count with starts[n] <= task; starts ascend from 0.
inline int64_t last_start(const int64_t* starts, int64_t count, int64_t task) {
  int64_t low = 0, high = count;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (starts[middle] <= task ? low : high) = middle;
  }
  return low;
}

// Pauses before the processor is offered to others, longer than a block takes: who waits for one and yields too early
// may get it back a tick later (Zen 4, two threads on a busy machine, T 512, causal, backward: 4.0 ms with 2,000, 1.0
// with 20,000).
constexpr int64_t kPausesBeforeYield = 20000;

// body(task) for tasks that go out in order; where each is a whole head and waits for none, it stays with the thread
// that had the head's rows before.
template <class Body>
inline void for_tasks(int64_t count, bool whole_heads, Body&& body) {
  if (whole_heads) return parallel_near(count, body);
  parallel_for(count, body);
}

struct Turns {
  int32_t* turn;       // one per sum: how many have added
  int32_t* abandoned;  // a task failed: nobody waits any more

  // Waits until `before` tasks have added to sum n. False: abandoned.
  bool wait(int64_t n, int32_t before) const {
    for (int64_t spins = 0; __atomic_load_n(turn + n, __ATOMIC_ACQUIRE) != before; ++spins) {
      if (__atomic_load_n(abandoned, __ATOMIC_ACQUIRE)) return false;
      if (spins < kPausesBeforeYield) {
        hwy::Pause();
      } else {
        sched_yield();
      }
    }
    return true;
  }
  void pass(int64_t n) const { __atomic_fetch_add(turn + n, 1, __ATOMIC_RELEASE); }
};
