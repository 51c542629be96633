// The pool's threads: after a fork, under a cpuset, on which CPUs, at the end of the process.
#include "multihead/base/pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "multihead/base/cpu_set.h"
#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "tests/harness/child.h"

// The sanitizer refuses threads made after a fork from a process with threads; that is what is tested here.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace mh {
namespace {

class Pool : public testing::Test {
 protected:
  void TearDown() override { set_threads(before_); }
  int before_ = threads();
};

// GCC 12's sanitizers leave their own allocators locked in a child that was forked while another thread allocated.
class PoolFork : public Pool {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "AddressSanitizer's allocator does not survive a fork of a process with threads";
#endif
  }
};

// Runs `body` in a child; it passes by returning true.
template <class Body>
bool holds_in_child(Body body) {
  const pid_t child = fork_child();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool squares_are_right() {
  std::vector<int64_t> out(500, -1);
  parallel_for(500, [&](int64_t i) { out[static_cast<size_t>(i)] += i * i + 1; });
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

TEST_F(PoolFork, ChildHasItsOwnPool) {
  set_threads(3);
  EXPECT_TRUE(squares_are_right());
  EXPECT_TRUE(holds_in_child([] { return threads() == 3 && three_threads_meet() && squares_are_right(); }));
  EXPECT_TRUE(
      holds_in_child([] { return holds_in_child([] { return three_threads_meet(); }) && squares_are_right(); }));
  EXPECT_TRUE(squares_are_right());
}

TEST_F(PoolFork, WhileAnotherThreadIsInTheMiddle) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer's allocator does not survive a fork while another thread allocates";
#endif
  set_threads(3);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) squares_are_right();
  });
  for (int round = 0; round < 10; ++round) EXPECT_TRUE(holds_in_child(squares_are_right));
  stop = true;
  busy.join();
}

TEST_F(PoolFork, InsideABody) {
  set_threads(2);
  std::atomic<int> good{0};
  parallel_for(2, [&](int64_t) { good += holds_in_child(squares_are_right) ? 1 : 0; });
  EXPECT_EQ(good, 2);
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

TEST_F(Pool, DefaultIsTheNumberOfAllowedCpus) {
  EXPECT_EQ(default_threads_in_fresh_process("unset MH_THREADS;"), static_cast<int>(allowed_cpus().size()));
}

TEST_F(Pool, DefaultHonoursTheCpuset) {
  EXPECT_TRUE(holds_in_child([] {
    keep_one_cpu();
    return default_threads_in_fresh_process("unset MH_THREADS;") == 1;
  }));
}

TEST_F(Pool, EnvironmentSetsTheNumber) {
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS=5"), 5);
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS="), static_cast<int>(allowed_cpus().size()));
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS=many"), -1);
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS=0"), -1);
  EXPECT_EQ(default_threads_in_fresh_process("MH_THREADS=4x"), -1);
}

TEST_F(Pool, WorksOnOneCpuWithManyThreads) {
  EXPECT_TRUE(holds_in_child([] {
    keep_one_cpu();
    set_threads(7);
    return three_threads_meet() && squares_are_right();
  }));
}

TEST_F(Pool, WorkersStayOnTheirOwnCpusAndTheCallerIsFree) {
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

TEST_F(Pool, WorkersAreUnpinnedWhereTheyOutnumberTheCpus) {
  const std::vector<int> cpus = allowed_cpus();
  set_threads(2);
  EXPECT_TRUE(squares_are_right());
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

TEST_F(Pool, ExitFromWithinABodyEndsTheProcess) {
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
