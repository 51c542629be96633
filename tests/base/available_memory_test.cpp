// What a process may still take, told by files of the test's own.
#include "multihead/base/available_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class AvailableMemory : public testing::Test {
 protected:
  AvailableMemory() {
    std::filesystem::create_directories(folder_ / "proc/self");
    std::filesystem::create_directories(folder_ / "cgroup/a/b");
    std::filesystem::create_directories(folder_ / "cgroup/memory/a");
    put_text(
        folder_ / "proc/meminfo",
        "MemTotal:       16000000 kB\nMemFree:         1000 kB\nMemAvailable:    8000000 kB\nSwapFree:   1000 kB\n");
  }
  int64_t there() const { return available_memory({.proc = folder_ / "proc", .cgroup = folder_ / "cgroup"}); }
  void group(const std::string& path, const std::string& limit, const std::string& used, const std::string& files) {
    put_text(folder_ / "cgroup" + path + "/memory.max", limit + "\n");
    put_text(folder_ / "cgroup" + path + "/memory.current", used + "\n");
    put_text(folder_ / "cgroup" + path + "/memory.stat", "anon 5\ninactive_file " + files + "\nactive_file 7\n");
  }
  TemporaryFolder folder_;
};

TEST_F(AvailableMemory, IsWhatTheMachineHas) { EXPECT_EQ(there(), 8001000LL * 1024); }

TEST_F(AvailableMemory, IsWhatTheTightestGroupLeaves) {
  put_text(folder_ / "proc/self/cgroup", "0::/a/b\n");
  group("/a/b", "max", "500", "0");
  EXPECT_EQ(there(), 8001000LL * 1024);
  group("/a", "100000", "30000", "1000");
  EXPECT_EQ(there(), 71000);
  group("/a/b", "50000", "10000", "0");
  EXPECT_EQ(there(), 40000);
  group("", "20000", "30000", "0");
  EXPECT_EQ(there(), 0);
}

TEST_F(AvailableMemory, ReadsGroupsOfTheFirstVersion) {
  put_text(folder_ / "proc/self/cgroup", "4:memory:/a\n3:cpu:/\n");
  put_text(folder_ / "cgroup/memory/a/memory.limit_in_bytes", "90000\n");
  put_text(folder_ / "cgroup/memory/a/memory.usage_in_bytes", "80000\n");
  put_text(folder_ / "cgroup/memory/a/memory.stat", "total_inactive_file 5000\n");
  EXPECT_EQ(there(), 15000);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need more addresses
TEST_F(AvailableMemory, IsWhatTheLimitOfAddressesLeaves) {
  put_text(folder_ / "proc/self/statm", "1 1 1 0 0 0 0\n");
  const auto limited = [&] {
    const rlimit limit{.rlim_cur = 4LL << 30, .rlim_max = 4LL << 30};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    _exit(there() == (4LL << 30) - sysconf(_SC_PAGESIZE) ? 0 : 1);
  };
  EXPECT_EXIT(limited(), testing::ExitedWithCode(0), "");
}
#endif

TEST_F(AvailableMemory, IsUnlimitedWhereNothingIsKnown) {
  std::filesystem::remove_all(folder_ / "proc");
  EXPECT_EQ(there(), std::numeric_limits<int64_t>::max());
}

TEST(AvailableMemoryHere, IsMoreThanNothing) { EXPECT_GT(available_memory(), 0); }

}  // namespace
}  // namespace mh
