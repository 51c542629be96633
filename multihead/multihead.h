// The public surface, in reading order. From C: multihead/c.h.
#pragma once

#include "multihead/base/error.h"
#include "multihead/base/dtype.h"
#include "multihead/base/parallel.h"
#include "multihead/tensor/tensor.h"
#include "multihead/tensor/named_tensors.h"
#include "multihead/autograd/tape.h"
#include "multihead/ops/mask.h"
#include "multihead/ops/attention.h"
#include "multihead/ops/kv_cache.h"
#include "multihead/ops/matmul.h"
#include "multihead/ops/machine.h"
#include "multihead/io/safetensors.h"
#include "multihead/io/checkpoint.h"
