// The amx rung with every tile instruction done in software.
#include "multihead/kernels/cpu/rungs.h"

namespace mh::kernels {

Table twin::refine(Table below) { return below; }

}  // namespace mh::kernels
