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
#include "multihead/kernels/cpu/rungs.h"
#include "multihead/kernels/table.h"

// Sanitizers watch every access wherever its code stands; forced into all its callers, it is watched in many copies, and they
// take most of the time to compile. Highway's own functions, already read, stay inlined.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef HWY_INLINE
#define HWY_INLINE inline
#endif
