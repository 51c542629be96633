// The kernels of an NVIDIA GPU, in a library of their own that is found at run time: a program without it, or on a
// machine without a GPU, loses nothing else.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/kernels/attention.h"

namespace mh::kernels::gpu {

// Where work goes: a device of the driver's numbering, and one of its streams (a cudaStream_t; null: the default one).
struct Queue {
  int device = 0;
  void* stream = nullptr;
};

// attention_forward and attention_backward of the table (kernels/attention.h) on the GPU. q, k, v, the results and
// their gradients are memory of the device; masks, biases and all else may be memory of either side. Returns when the
// work is queued; where drelative, dsink or dscale are wanted, which are memory of the host, when it is done. Throws:
// unsupported where there is no library or no GPU; internal where the GPU fails, with what was asked for and what is
// left.
void attention_forward(const AttentionForwardArgs& args, const Queue& queue);
void attention_backward(const AttentionBackwardArgs& args, const Queue& queue);

struct Facts {
  std::string library;          // the file that is loaded; empty: none
  std::string missing;          // a sentence on what is missing; empty: nothing
  std::string name;             // of the first GPU; empty: none
  int major = 0, minor = 0;     // its compute capability
  int64_t memory = 0;           // bytes
  std::string driver, toolkit;  // versions of CUDA, "13.0"; empty: unknown
};
// What is there: loads the driver's library, and ours.
Facts facts();

}  // namespace mh::kernels::gpu
