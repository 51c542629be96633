// The memory that a model's training takes at least, told before any of it is taken.
#pragma once

#include <cstdint>
#include <new>

#include "multihead/base/out_of_memory.h"
#include "multihead/train/config/config.h"

namespace mh::detail {

// Parameters of the model of this config.
int64_t parameter_count(const TransformerConfig& config, TaskKind kind = TaskKind::translation);
int64_t parameter_count(const TrainConfig& config);

// Bytes of weights, gradients and AdamW's two moments, with the running mean where train.ema keeps one, the bf16 copies
// that train.precision makes, and the table of sinusoids; of what train.frozen keeps, the weights alone. What a batch
// needs on top depends on its sentences.
int64_t training_bytes(const TrainConfig& config);

// Throws: invalid_argument, with both numbers, where training_bytes is more than `available`. A vocabulary that is not
// settled counts as the smallest there is.
void check_fits_memory(const TrainConfig& config, int64_t available);

// Throws: invalid_argument: what to try where the memory did not suffice after all.
[[noreturn]] void fail_out_of_memory(const TrainConfig& config);

// work(), with that sentence where there is too little memory for it.
template <class F>
auto within_memory_of(const TrainConfig& config, F&& work) {
  try {
    return work();
  } catch (const OutOfMemory&) {
    fail_out_of_memory(config);
  } catch (const std::bad_alloc&) {
    fail_out_of_memory(config);
  }
}

}  // namespace mh::detail
