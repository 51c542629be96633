// Attention where q, k and v are memory of an NVIDIA GPU: the options and the meaning of attention.h.
#pragma once

#include "multihead/kernels/gpu.h"
#include "multihead/ops/attention/attention.h"

namespace mh {

// As attention_into (into call.result) and attention_backward_into, for tensors that wrap memory of queue.device: q, k,
// v, the results, their gradients and dense biases' gradients. Lengths, offsets, documents, boundaries, slopes, tables,
// sinks and taus, and the gradients of the last four, are memory of the host; dense masks and biases may be either.
// Keys past a sequence's length get no gradient written: the caller clears dk and dv. Work is queued behind what the
// stream holds. Throws: as there; unsupported without the GPU's kernels and for score mixing; internal where the GPU
// fails.
using GpuQueue = kernels::gpu::Queue;
void attention_into_on_gpu(const AttentionCall& call, const AttentionOptions& options, const GpuQueue& queue);
void attention_backward_into_on_gpu(const AttentionGradients& out, const AttentionCall& call,
                                    const OutputGradients& gradients, const AttentionOptions& options,
                                    const GpuQueue& queue);

// What there is of GPUs and of what uses them, for `multihead doctor`.
using GpuFacts = kernels::gpu::Facts;
GpuFacts gpu_facts();

}  // namespace mh
