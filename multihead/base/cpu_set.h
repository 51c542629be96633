// The CPUs that this process may run on.
#pragma once

#include <thread>
#include <vector>

namespace mh {

// Numbers of the CPUs in the calling thread's affinity mask, ascending; it reflects cpusets. Empty where the system
// does not say.
std::vector<int> allowed_cpus();

// Lets `thread` run on these CPUs alone. Best effort: a CPU may have left the cpuset meanwhile.
void run_on(std::thread& thread, const std::vector<int>& cpus);

}  // namespace mh
