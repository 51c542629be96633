// parallel_for on our pool and on a caller's executor.
#include "multihead/base/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "multihead/base/cpu_set.h"
#include "multihead/base/error.h"

// The sanitizer refuses threads made after a fork from a process with threads; that is what is tested here.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

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
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], i * i);
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

// Runs `body` in a child; it passes by returning true.
template <class Body>
bool holds_in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool squares_are_right() {
  const std::vector<int64_t> out = squares(500);
  for (int64_t i = 0; i < 500; ++i) {
    if (out[static_cast<size_t>(i)] != i * i) return false;
  }
  return true;
}

bool three_threads_meet() {
  std::atomic<int> arrived{0};
  parallel_for(3, [&](int64_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  return arrived == 3;
}

TEST_F(Parallel, ChildOfAForkHasItsOwnPool) {
  set_threads(3);
  expect_squares(100);
  EXPECT_TRUE(holds_in_child([] { return threads() == 3 && three_threads_meet() && squares_are_right(); }));
  EXPECT_TRUE(
      holds_in_child([] { return holds_in_child([] { return three_threads_meet(); }) && squares_are_right(); }));
  expect_squares(100);
}

TEST_F(Parallel, ForkWhileAnotherThreadIsInTheMiddle) {
  set_threads(3);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) squares(20);
  });
  for (int round = 0; round < 10; ++round) EXPECT_TRUE(holds_in_child(squares_are_right));
  stop = true;
  busy.join();
}

TEST_F(Parallel, ForkInsideABody) {
  set_threads(2);
  std::atomic<int> good{0};
  parallel_for(2, [&](int64_t) { good += holds_in_child(squares_are_right) ? 1 : 0; });
  EXPECT_EQ(good, 2);
}

TEST_F(Parallel, WorksFromAThreadThatEnds) {
  set_threads(3);
  for (int round = 0; round < 5; ++round) std::thread([] { EXPECT_TRUE(squares_are_right()); }).join();
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
  expect_squares(40);
  EXPECT_EQ(recorder.runs, 1);
  EXPECT_EQ(recorder.tasks, 40);
  set_executor({});
  expect_squares(40);
  EXPECT_EQ(recorder.runs, 1);
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

// Limits this process to the first CPU of its mask.
void keep_one_cpu() {
  const std::vector<int> cpus = allowed_cpus();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpus.front(), &one);
  sched_setaffinity(0, sizeof one, &one);
}

// What a fresh process, where nobody has asked for the number of threads yet, says of it; -1 for a refusal.
int default_threads_in_fresh_process(const char* environment) {
  const std::string command = std::string(environment) + " exec /proc/" + std::to_string(getpid()) +
                              "/exe --gtest_also_run_disabled_tests --gtest_filter=FreshProcess.*";
  FILE* out = popen(command.c_str(), "r");
  int n = -2;
  for (char line[256]; fgets(line, sizeof line, out) != nullptr;) std::sscanf(line, "threads=%d", &n);
  pclose(out);
  return n;
}

TEST(FreshProcess, DISABLED_SaysItsThreads) {
  int n = -1;
  try {
    n = threads();
    if (!squares_are_right()) n = -3;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("MH_THREADS"), std::string::npos);
  }
  std::printf("threads=%d\n", n);
}

TEST_F(Parallel, DefaultIsTheNumberOfAllowedCpus) {
  EXPECT_EQ(default_threads_in_fresh_process("unset MH_THREADS;"), static_cast<int>(allowed_cpus().size()));
}

TEST_F(Parallel, DefaultHonoursTheCpuset) {
  EXPECT_TRUE(holds_in_child([] {
    keep_one_cpu();
    return default_threads_in_fresh_process("unset MH_THREADS;") == 1;
  }));
}

TEST_F(Parallel, EnvironmentSetsTheNumber) {
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS=5"), 5);
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS="), static_cast<int>(allowed_cpus().size()));
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS=many"), -1);
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS=0"), -1);
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS=4x"), -1);
}

TEST_F(Parallel, WorksOnOneCpuWithManyThreads) {
  EXPECT_TRUE(holds_in_child([] {
    keep_one_cpu();
    set_threads(7);
    return three_threads_meet() && squares_are_right();
  }));
}

TEST_F(Parallel, WorkersStayOnTheirOwnCpusAndTheCallerIsFree) {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  const int n = static_cast<int>(std::min<size_t>(cpus.size(), 4));
  set_threads(n);
  std::vector<std::vector<int>> masks(static_cast<size_t>(n));
  std::atomic<int> arrived{0};
  const auto caller = std::this_thread::get_id();
  std::atomic<size_t> caller_index{0};
  parallel_for(n, [&](int64_t i) {
    ++arrived;
    while (arrived < n) std::this_thread::yield();
    masks[static_cast<size_t>(i)] = allowed_cpus();
    if (std::this_thread::get_id() == caller) caller_index = static_cast<size_t>(i);
  });
  std::set<int> taken;
  for (size_t i = 0; i < masks.size(); ++i) {
    if (i == caller_index) {
      EXPECT_EQ(masks[i], cpus);
    } else {
      ASSERT_EQ(masks[i].size(), 1u);
      EXPECT_TRUE(taken.insert(masks[i][0]).second) << "two workers on CPU " << masks[i][0];
    }
  }
}

TEST_F(Parallel, WorkersAreUnpinnedWhereTheyOutnumberTheCpus) {
  const std::vector<int> cpus = allowed_cpus();
  set_threads(2);
  expect_squares(10);
  const int n = static_cast<int>(cpus.size()) + 1;
  set_threads(n);
  std::atomic<int> arrived{0}, pinned{0};
  parallel_for(n, [&](int64_t) {
    ++arrived;
    while (arrived < n) std::this_thread::yield();
    if (allowed_cpus() != cpus) ++pinned;
  });
  EXPECT_EQ(pinned, 0);
}

TEST_F(Parallel, ExitFromWithinABodyEndsTheProcess) {
  EXPECT_EXIT(
      {
        set_threads(2);
        parallel_for(2, [](int64_t i) {
          if (i == 1) std::exit(3);
        });
        std::exit(4);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace mh
