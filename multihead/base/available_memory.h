// How much more memory this process may take.
#pragma once

#include <cstdint>
#include <string>

namespace mh {

// Where the system tells of memory: the test's own files stand in for it.
struct MemoryFiles {
  std::string proc = "/proc", cgroup = "/sys/fs/cgroup";
};

// The least of what the machine has (MemAvailable and free swap), what the control groups of the process leave
// (version 1 or 2; what they keep of files is counted as free) and what its limit of addresses leaves (ulimit -v), in
// bytes. The largest number where nothing is known.
int64_t available_memory(const MemoryFiles& files = {});

}  // namespace mh
