// Memory a kernel needs for the length of one task: a stack of blocks per thread, kept for the life of the thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mh {

// Blocks come 64-byte aligned (2 MiB aligned with huge pages asked for from 2 MiB on), uninitialised, and go back all
// together when the Scratch ends: to the thread, or to the system where the block is past 64 MiB. Scratches of one
// thread nest like stack frames.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Throws: OutOfMemory where the system has no memory left, or for a count that is negative or too large.
  template <class T>
  [[gnu::always_inline]] T* take(int64_t count) {
    return static_cast<T*>(take_bytes(count, sizeof(T)));
  }

 private:
  void* take_bytes(int64_t count, size_t each);
  size_t mark_block_, mark_used_;
};

// Bytes held by the scratch of all threads, and the most ever held.
struct ScratchUse {
  int64_t now = 0, peak = 0;
};
ScratchUse scratch_use();

}  // namespace mh
