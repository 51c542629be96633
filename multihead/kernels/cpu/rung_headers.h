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
