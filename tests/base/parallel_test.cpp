// parallel_for on our pool and on a caller's executor.
#include "multihead/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "multihead/base/error.h"

namespace mh {
namespace {

class Parallel : public testing::Test {
 protected:
  void TearDown() override {
    set_executor({});
    set_threads(before_);
  }
  int before_ = threads();
};

std::vector<int64_t> squares(int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count), -1);
  parallel_for(count, [&](int64_t i) { out[static_cast<size_t>(i)] += i * i + 1; });
  return out;
}

void expect_squares(int64_t count) {
  const std::vector<int64_t> out = squares(count);
  std::vector<int64_t> near(static_cast<size_t>(count), -1);
  parallel_near(count, [&](int64_t i) { near[static_cast<size_t>(i)] += i * i + 1; });
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], i * i);
  ASSERT_EQ(near, out);
}

TEST_F(Parallel, EachIndexRunsOnceForAnyNumberOfThreads) {
  for (const int n : {1, 2, 3, 7, 16, 2, 16, 1}) {
    set_threads(n);
    EXPECT_EQ(threads(), n);
    for (const int64_t count : {0, 1, 2, 3, 15, 16, 17, 1000}) expect_squares(count);
  }
}

TEST_F(Parallel, ManyShortRunsInARow) {
  for (const int n : {2, 7}) {
    set_threads(n);
    std::atomic<int64_t> sum{0};
    for (int round = 0; round < 2000; ++round) parallel_for(9, [&](int64_t i) { sum += i; });
    EXPECT_EQ(sum, 2000 * 36);
  }
}

TEST_F(Parallel, WorkersWakeAfterTheyFellAsleep) {
  set_threads(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    expect_squares(100);
  }
}

TEST_F(Parallel, SeveralThreadsTakePart) {
  set_threads(3);
  std::atomic<int> arrived{0};
  parallel_for(3, [&](int64_t) {  // ends only if three threads are inside at once
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST_F(Parallel, TaskMayWaitForASmallerOne) {
  for (const int n : {1, 2, 7}) {
    set_threads(n);
    std::vector<std::atomic<bool>> done(200);
    parallel_for(200, [&](int64_t i) {
      while (i > 0 && !done[static_cast<size_t>(i - 1)]) std::this_thread::yield();
      done[static_cast<size_t>(i)] = true;
    });
    EXPECT_TRUE(done[199]);
  }
}

TEST_F(Parallel, NeighboursStayOnOneThreadFromCallToCall) {
  set_threads(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread::id> by(100);
    std::atomic<int> arrived{0};
    parallel_near(100, [&](int64_t i) {
      by[static_cast<size_t>(i)] = std::this_thread::get_id();
      // Both threads are at their first index before either goes on; a helper that never comes does not hang the test.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      if (i == 0 || i == 50) {
        ++arrived;
        while (arrived < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      }
    });
    ASSERT_EQ(by[0], caller);
    ASSERT_NE(by[50], caller);
    ASSERT_NE(by[50], std::thread::id());
  }
}

TEST_F(Parallel, NearTasksAreSharedWhereOneThreadIsLate) {
  set_threads(2);
  std::atomic<int> by_caller{0};
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> slow{false};
  parallel_near(64, [&](int64_t) {
    if (std::this_thread::get_id() == caller) {
      ++by_caller;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    } else if (!slow.exchange(true)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  });
  EXPECT_GT(by_caller, 32);
}

TEST_F(Parallel, NestedCallStaysOnItsThread) {
  set_threads(4);
  std::atomic<int> strays{0};
  std::atomic<int64_t> sum{0};
  parallel_for(8, [&](int64_t) {
    const auto self = std::this_thread::get_id();
    int64_t last = -1;
    parallel_for(10, [&](int64_t j) {
      if (std::this_thread::get_id() != self || j != last + 1) ++strays;
      last = j;
      sum += j;
    });
  });
  EXPECT_EQ(strays, 0);
  EXPECT_EQ(sum, 8 * 45);
}

TEST_F(Parallel, BodyMayBeConst) {
  std::atomic<int> calls{0};
  const auto body = [&](int64_t) { ++calls; };
  parallel_for(5, body);
  EXPECT_EQ(calls, 5);
}

TEST_F(Parallel, SeveralCallersAtOnce) {
  set_threads(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const std::vector<int64_t> out = squares(50);
        for (int64_t i = 0; i < 50; ++i) wrong += out[static_cast<size_t>(i)] != i * i ? 1 : 0;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Parallel, ThreadsMayBeSetWhileOthersRun) {
  std::thread caller([] {
    for (int round = 0; round < 300; ++round) squares(20);
  });
  for (int round = 0; round < 300; ++round) set_threads(1 + round % 5);
  caller.join();
  expect_squares(20);
}

TEST_F(Parallel, ExceptionOfTheSmallestIndexIsRethrown) {
  for (const int n : {1, 2, 7}) {
    set_threads(n);
    std::atomic<int> running{0};
    for (int round = 0; round < 20; ++round) {
      try {
        parallel_for(100, [&](int64_t i) {
          ++running;
          if (i >= 40) {
            --running;
            throw std::runtime_error(std::to_string(i));
          }
          --running;
        });
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "40");
      }
      EXPECT_EQ(running, 0);
    }
    expect_squares(100);
  }
}

TEST_F(Parallel, ExceptionOfANestedCallPassesThrough) {
  set_threads(3);
  const auto nested = [] {
    parallel_for(4, [](int64_t i) {
      parallel_for(4, [&](int64_t j) {
        if (i == 2 && j == 3) throw std::runtime_error("inner");
      });
    });
  };
  EXPECT_THROW(nested(), std::runtime_error);
  expect_squares(30);
}

TEST_F(Parallel, CountsOutOfRangeAreRefused) {
  EXPECT_THROW(set_threads(0), Error);
  EXPECT_THROW(set_threads(-3), Error);
  EXPECT_THROW(set_threads(1025), Error);
  EXPECT_EQ(threads(), before_);
}

TEST_F(Parallel, WorksFromAThreadThatEnds) {
  set_threads(3);
  for (int round = 0; round < 5; ++round) std::thread([] { expect_squares(500); }).join();
}

struct Recorder {
  int64_t runs = 0, tasks = 0;
  static void run(void* self, int64_t count, void (*task)(void*, int64_t), void* context) {
    auto& me = *static_cast<Recorder*>(self);
    ++me.runs;
    me.tasks += count;
    std::thread other([&] {
      for (int64_t i = 0; i < count; i += 2) task(context, i);
    });
    for (int64_t i = 1; i < count; i += 2) task(context, i);
    other.join();
  }
};

TEST_F(Parallel, ExecutorOfTheCallerDoesTheWork) {
  Recorder recorder;
  set_executor({Recorder::run, &recorder});
  squares(40);
  EXPECT_EQ(recorder.runs, 1);
  EXPECT_EQ(recorder.tasks, 40);
  expect_squares(40);
  const int runs = recorder.runs;
  EXPECT_EQ(runs, 3);  // parallel_near as well
  set_executor({});
  expect_squares(40);
  EXPECT_EQ(recorder.runs, runs);
}

TEST_F(Parallel, NearTasksKeepAllThreadsOfALargeMachineBusy) {
  set_threads(200);
  Recorder recorder;
  set_executor({Recorder::run, &recorder});
  std::vector<int> times(1000);
  parallel_near(1000, [&](int64_t i) { ++times[static_cast<size_t>(i)]; });
  EXPECT_EQ(recorder.tasks, 200);
  EXPECT_EQ(times, std::vector<int>(1000, 1));
}

TEST_F(Parallel, NestedCallDoesNotReachTheExecutor) {
  Recorder recorder;
  set_executor({Recorder::run, &recorder});
  std::atomic<int64_t> sum{0};
  parallel_for(4, [&](int64_t) { parallel_for(5, [&](int64_t j) { sum += j; }); });
  EXPECT_EQ(sum, 40);
  EXPECT_EQ(recorder.runs, 1);
}

TEST_F(Parallel, ExceptionCrossesTheExecutor) {
  Recorder recorder;
  set_executor({Recorder::run, &recorder});
  EXPECT_THROW(parallel_for(10,
                            [](int64_t i) {
                              if (i == 3) throw std::runtime_error("three");
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace mh
