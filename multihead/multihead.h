// The public surface, in reading order. From C: multihead/c.h.
#pragma once

#include "multihead/base/error.h"      // IWYU pragma: export
#include "multihead/base/dtype.h"      // IWYU pragma: export
#include "multihead/base/parallel.h"   // IWYU pragma: export
#include "multihead/tensor/tensor.h"   // IWYU pragma: export
#include "multihead/ops/mask.h"        // IWYU pragma: export
#include "multihead/ops/attention.h"   // IWYU pragma: export
#include "multihead/ops/kv_cache.h"    // IWYU pragma: export
#include "multihead/ops/matmul.h"        // IWYU pragma: export
#include "multihead/ops/machine.h"       // IWYU pragma: export
