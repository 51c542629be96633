// Reads /proc/meminfo, the control groups above this process and its limits.
#include "multihead/base/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace mh {

namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The number of a file that holds nothing else; nothing for "max".
std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream in(path);
  int64_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

// The number behind a word at the beginning of a line.
std::optional<int64_t> number_after(const std::string& path, const std::string& word) {
  std::ifstream in(path);
  std::string name;
  int64_t value = 0;
  while (in >> name >> value) {
    if (name == word) return value;
    std::getline(in, name);
  }
  return std::nullopt;
}

int64_t of_machine(const MemoryFiles& files) {
  const std::string path = files.proc + "/meminfo";
  const std::optional<int64_t> free = number_after(path, "MemAvailable:");
  return free ? (*free + number_after(path, "SwapFree:").value_or(0)) * 1024 : kUnlimited;
}

struct GroupNames {
  const char *limit, *used, *files;
};
constexpr GroupNames kVersion2{"/memory.max", "/memory.current", "inactive_file"};
constexpr GroupNames kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};

// The least over the group and those above it.
int64_t of_groups(const std::string& root, std::string path, const GroupNames& names) {
  int64_t least = kUnlimited;
  while (true) {
    const std::string group = root + path;
    const std::optional<int64_t> limit = number_in(group + names.limit), used = number_in(group + names.used);
    if (limit && used) {
      const int64_t kept = number_after(group + "/memory.stat", names.files).value_or(0);
      least = std::min(least, std::max<int64_t>(0, *limit - *used + std::min(kept, *used)));
    }
    if (path.empty()) return least;
    path.resize(path.rfind('/'));
  }
}

int64_t of_all_groups(const MemoryFiles& files) {
  int64_t least = kUnlimited;
  std::ifstream in(files.proc + "/self/cgroup");  // "0::/path" and "4:memory:/path"
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kind = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path.empty() || path.front() != '/' || path == "/") path.clear();
    if (kind.empty()) least = std::min(least, of_groups(files.cgroup, path, kVersion2));
    if (kind == "memory") least = std::min(least, of_groups(files.cgroup + "/memory", path, kVersion1));
  }
  return least;
}

int64_t of_addresses(const MemoryFiles& files) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(kUnlimited)) return kUnlimited;
  const int64_t pages = number_in(files.proc + "/self/statm").value_or(0);
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE));
}

}  // namespace

int64_t available_memory(const MemoryFiles& files) {
  return std::min({of_machine(files), of_all_groups(files), of_addresses(files)});
}

}  // namespace mh
