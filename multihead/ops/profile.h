// Where the time goes, kernel by kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mh {

struct ProfileRow {
  std::string name, detail;  // detail: the sizes of a matrix product
  int64_t calls = 0;
  double seconds = 0;  // by the clock, all threads together
  double flops = 0, bytes = 0;
};

// Times every kernel called from now on. Costs a clock and a lock a call.
void start_profile();
// Stops, and says what was noted, most time first.
std::vector<ProfileRow> stop_profile();

}  // namespace mh
