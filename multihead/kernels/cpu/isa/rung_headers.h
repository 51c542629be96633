// What the bodies of a rung may use: no std:: template is among it, so nothing weak carries a rung's instructions.
#pragma once

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "multihead/base/parallel.h"
#include "multihead/base/scratch.h"
#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/cpu/isa/rungs.h"
#include "multihead/kernels/table.h"

// A sanitizer watches an access wherever its code stands: forced into every caller, the same code is watched, and
// compiled, many times over (the twin of AMX under AddressSanitizer: 115 s to 17 s, GCC 12, 2026-11; its tests take no
// longer). Highway's own functions have been read above and stay inlined.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef HWY_INLINE
#define HWY_INLINE inline
#endif
