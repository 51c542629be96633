// Memory of tensors that ended, kept for the next ones: a training step asks for the same sizes again and again, and
// fresh memory costs a page fault every 4 KiB (or 2 MiB).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mh {

// As allocate_bytes (base/memory.h), from what is kept where a block of the size class lies ready. Classes are an
// eighth of a power of two apart: at most an eighth of a block is unused. Throws: OutOfMemory, after giving back all
// that is kept and trying again.
void* take_bytes(size_t bytes);
// Keeps the block, or gives it back to the system where blocks in use and kept would come to more than 5/4 of the most
// that was ever in use at once, even without those of sizes nobody asks for any more.
void give_bytes(void* data, size_t bytes);

// Gives all that is kept back to the system.
void release_kept_memory();

struct MemoryUse {
  int64_t in_use = 0, peak = 0, kept = 0;  // bytes of tensors alive, their most ever, and bytes lying ready
};
MemoryUse memory_use();

}  // namespace mh
