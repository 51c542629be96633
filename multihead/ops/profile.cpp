// The profile of the kernels, as ops' users see it.
#include "multihead/ops/profile.h"

#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/kernels/cpu/profile.h"

namespace mh {

void start_profile() {
  kernels::use_profile(true);
  kernels::take_profile();
}

std::vector<ProfileRow> stop_profile() {
  kernels::use_profile(false);
  std::vector<ProfileRow> rows;
  for (const kernels::KernelTime& t : kernels::take_profile())
    rows.push_back({t.name, t.detail, t.calls, t.seconds, t.flops, t.bytes});
  return rows;
}

}  // namespace mh
