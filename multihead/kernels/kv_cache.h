// The contract of appending keys and values to a cache (ops/attention/kv_cache.h).
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// Row t of entry n of k and v becomes key lengths[n] + t of sequence sequences[n]: in its own row of keys and values,
// or in row j % page of page pages(b, j / page). i8 holds round(x / scale), scale = max|x| / 127; a row that is not
// finite reads back as NaN.
struct CacheAppendArgs {
  View k{}, v{};          // (count, Hkv, T, D) f32, bf16 or f16, any strides
  View keys{}, values{};  // f32, bf16, f16 or i8, unit last stride
  View key_scales{}, value_scales{};
  View pages{};                        // i32 (B, blocks); null: not paged
  const int32_t* sequences = nullptr;  // count of them
  const int32_t* lengths = nullptr;    // of each before
  int64_t count = 0;
  int64_t page = 0;
};

}  // namespace mh::kernels
