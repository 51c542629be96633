// Aligned allocation, on huge pages where they pay.
#include "multihead/base/memory.h"

#include <sys/mman.h>

#include <cstdlib>

#include "multihead/base/out_of_memory.h"

namespace mh {

namespace {

// No process has more addresses; asking for them ends a sanitizer's process instead of failing.
constexpr size_t kMostBytes = size_t{1} << 47;

}  // namespace

void* allocate_bytes(size_t bytes) {
  if (bytes > kMostBytes) throw OutOfMemory("multihead", bytes);
  const bool huge = bytes >= kHugePage;
  const size_t rounded = bytes == 0 ? kCacheLine : (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  void* data = nullptr;
  if (posix_memalign(&data, huge ? kHugePage : kCacheLine, rounded) != 0) throw OutOfMemory("multihead", bytes);
  if (huge) madvise(data, rounded / kHugePage * kHugePage, MADV_HUGEPAGE);  // a wish: refusal costs only speed
  return data;
}

void release_bytes(void* data) { std::free(data); }

}  // namespace mh
