// Kernels, their calls, times and rates.
#include "cli/verbs/profile_table.h"

#include <fmt/format.h>

namespace mh::cli {

void print_profile(const std::vector<ProfileRow>& rows, int64_t steps, double seconds) {
  const auto n = static_cast<double>(steps);
  fmt::print("\n{:<24} {:<22} {:>7} {:>9} {:>7} {:>9} {:>8}\n", "kernel", "sizes", "calls", "ms a step", "share",
             "GFLOP/s", "GB/s");
  double in_kernels = 0;
  for (const ProfileRow& row : rows) {
    in_kernels += row.seconds;
    if (row.seconds < 0.001 * seconds) continue;
    fmt::print("{:<24} {:<22} {:>7} {:>9.2f} {:>6.1f}% {:>9} {:>8}\n", row.name, row.detail, row.calls / steps,
               1e3 * row.seconds / n, 100 * row.seconds / seconds,
               row.flops > 0 ? fmt::format("{:.0f}", 1e-9 * row.flops / row.seconds) : "",
               row.bytes > 0 ? fmt::format("{:.1f}", 1e-9 * row.bytes / row.seconds) : "");
  }
  fmt::print("{:<24} {:<22} {:>7} {:>9.2f} {:>6.1f}%\n", "outside kernels", "", "", 1e3 * (seconds - in_kernels) / n,
             100 * (seconds - in_kernels) / seconds);
}

}  // namespace mh::cli
