// The rung of AMX tiles for bf16.
#include <hwy/highway.h>
#include <stdint.h>

#include "multihead/kernels/cpu/rungs.h"

namespace mh::kernels {
namespace {
#include "multihead/kernels/cpu/limits_amx.inl"
}  // namespace

Table amx::refine(Table below) {
  below.tile_peak.run = tile_loop;
  below.tile_probe.run = tile_probe_loop;
  return below;
}

}  // namespace mh::kernels
