// Where the time goes: every call of a kernel, timed at the one door all of them pass.
#pragma once

#include <string>
#include <vector>

#include "multihead/kernels/table.h"

namespace mh::kernels {

struct KernelTime {
  std::string name, detail;  // detail: the sizes of a matrix product
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;  // of products; 0 where memory is what counts
  double bytes = 0;  // read and written at least once, where that is easily told
};

// A table whose kernels are those of `below`, each call noted. `below` must live on.
Table profiled(const Table& below);
// What was noted since the last call, most time first; forgets it.
std::vector<KernelTime> take_profile();

}  // namespace mh::kernels
