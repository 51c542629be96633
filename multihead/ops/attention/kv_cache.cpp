// The cache: room, appending, pages shared until written.
#include "multihead/ops/attention/kv_cache.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "multihead/autograd/tape.h"
#include "multihead/base/checked_math.h"
#include "multihead/kernels/kv_cache.h"
#include "multihead/ops/attention/kv_cache_pages.h"
#include "multihead/ops/attention/plan.h"
#include "multihead/ops/run.h"

namespace mh {
namespace {

using detail::pages_for;

constexpr int64_t kMostKeys = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostWidth = 512;

void check_options(const KVCacheOptions& o) {
  const auto sizes = [&] {
    return fmt::format("batch {}, key heads {}, widths {} and {}, capacity {}, page {}", o.batch, o.key_heads,
                       o.key_width, o.value_width, o.capacity, o.page);
  };
  const bool sensible = o.batch >= 0 && o.key_heads >= 1 && o.capacity >= 0 && o.page >= 0;
  if (!sensible)
    fail(ErrorKind::invalid_argument,
         "kv_cache: the sizes make no cache; expected at least one key head and no negative size; {}", sizes());
  if (o.key_width < 1 || o.key_width > kMostWidth || o.value_width < 1 || o.value_width > kMostWidth) {
    fail(ErrorKind::invalid_argument, "kv_cache: a head is too narrow or too wide; expected 1 to {}; {}", kMostWidth,
         sizes());
  }
  if (o.dtype != DType::f32 && o.dtype != DType::bf16 && o.dtype != DType::f16 && o.dtype != DType::i8) {
    fail(ErrorKind::unsupported, "kv_cache: elements of type {} are not supported; expected f32, bf16, f16 or i8; {}",
         name(o.dtype), sizes());
  }
  const auto per_key = checked_multiply(o.key_heads, std::max(o.key_width, o.value_width) * 4);
  const int64_t keys = o.page > 0 ? pages_for(std::min(o.capacity, kMostKeys), o.page) : o.capacity;
  const auto entries = checked_multiply(keys, o.page > 0 ? std::max(o.page, o.batch) : o.batch);
  const bool fits = o.batch <= kMostKeys && o.page <= kMostKeys && o.capacity <= kMostKeys - o.page && per_key &&
                    entries && checked_multiply(*per_key, *entries);
  if (!fits)
    fail(ErrorKind::invalid_argument, "kv_cache: the sizes multiply past what can be addressed; expected less; {}",
         sizes());
}

}  // namespace

KVCache::KVCache(const KVCacheOptions& options) : options_(options) {
  check_options(options);
  const KVCacheOptions& o = options_;
  const int64_t pool = o.page > 0 ? pages_for(o.capacity, o.page) : 0;
  const int64_t entries = o.page > 0 ? pool : o.batch, length = o.page > 0 ? o.page : o.capacity;
  keys = empty({entries, o.key_heads, length, o.key_width}, o.dtype, o.device);
  values = empty({entries, o.key_heads, length, o.value_width}, o.dtype, o.device);
  if (o.dtype == DType::i8) {
    key_scales = empty({entries, o.key_heads, length}, DType::f32, o.device);
    value_scales = empty({entries, o.key_heads, length}, DType::f32, o.device);
  }
  lengths_.assign(static_cast<size_t>(o.batch), 0);
  if (o.page == 0) return;
  pages = zeros({o.batch, std::min<int64_t>(pool, 4)}, DType::i32);  // wider as sequences grow
  page_users_.assign(static_cast<size_t>(pool), 0);
  free_pages_.resize(static_cast<size_t>(pool));
  std::iota(free_pages_.rbegin(), free_pages_.rend(), 0);
}

int64_t KVCache::bytes() const {
  int64_t total = 0;
  for (const Tensor* t : {&keys, &values, &key_scales, &value_scales, &pages}) {
    if (*t) total += t->count() * size_of(t->dtype());
  }
  return total;
}

void KVCache::append(const Tensor& k, const Tensor& v) {
  std::vector<int32_t> all(lengths_.size());
  std::iota(all.begin(), all.end(), 0);
  append(k, v, all);
}

void KVCache::check_rows(const Tensor& k, const Tensor& v, const std::vector<int32_t>& sequences) const {
  const detail::CallShapes shapes{nullptr, &k, &v};
  detail::check_devices("kv_cache", {&keys, &k, &v});
  const KVCacheOptions& o = options_;
  const int64_t rows = static_cast<int64_t>(sequences.size());
  for (const auto& [what, t, width] : {std::tuple{"k", &k, o.key_width}, std::tuple{"v", &v, o.value_width}}) {
    check(static_cast<bool>(*t), "kv_cache: {} has no memory; expected ({}, {}, T, {}); {}", what, rows, o.key_heads,
          width, shapes);
    check(t->rank() == 4 && t->size(0) == rows && t->size(1) == o.key_heads && t->size(3) == width,
          "kv_cache: {} does not fit the cache; expected ({}, {}, T, {}); {}", what, rows, o.key_heads, width, shapes);
    if (t->dtype() != DType::f32 && t->dtype() != DType::bf16 && t->dtype() != DType::f16) {
      fail(ErrorKind::unsupported, "kv_cache: {} holds {}; expected f32, bf16 or f16; {}", what, name(t->dtype()),
           shapes);
    }
  }
  const int64_t count = k.size(2);
  check(v.size(2) == count, "kv_cache: k has {} rows and v {}; expected the same number; {}", count, v.size(2), shapes);
  std::vector<bool> seen(lengths_.size());
  for (const int32_t b : sequences) {
    check(b >= 0 && b < o.batch, "kv_cache: sequence {} is not in the cache; expected 0 to {}; {}", b, o.batch - 1,
          shapes);
    check(!seen[b], "kv_cache: sequence {} is named twice; expected each once; {}", b, shapes);
    seen[b] = true;
    check(o.page > 0 || count <= o.capacity - lengths_[b],
          "kv_cache: sequence {} holds {} keys and {} more do not fit; expected at most {}; {}", b, lengths_[b], count,
          o.capacity, shapes);
  }
  if (o.page == 0) return;
  check(count <= kMostKeys - o.page, "kv_cache: {} keys are appended at once; expected at most {}; {}", count,
        o.capacity, shapes);
  const int64_t needed = pages_to_grow(sequences, count), free = static_cast<int64_t>(free_pages_.size());
  check(needed <= free, "kv_cache: {} pages of {} keys are needed and {} are free; expected room in the pool; {}",
        needed, o.page, free, shapes);
}

void KVCache::append(const Tensor& k, const Tensor& v, const std::vector<int32_t>& sequences) {
  check_rows(k, v, sequences);
  refuse_traced("kv_cache", {k, v});
  const int64_t count = k.size(2);
  if (options_.page > 0) {
    for (const int32_t b : sequences) make_room(b, count);
  }
  std::vector<int32_t> before;
  before.reserve(sequences.size());
  for (const int32_t b : sequences) before.push_back(lengths_[b]);
  const Device device = options_.device;
  std::vector<Tensor> held;
  const Tensor table = pages.to(device);
  run(&Table::cache_append,
      {.k = k.view(),
       .v = v.view(),
       .keys = keys.view(),
       .values = values.view(),
       .key_scales = key_scales.view(),
       .value_scales = value_scales.view(),
       .pages = table.view(),
       .sequences = detail::placed(sequences, device, held),
       .lengths = detail::placed(before, device, held),
       .count = static_cast<int64_t>(sequences.size()),
       .page = options_.page},
      keys);
  for (const int32_t b : sequences) lengths_[b] += static_cast<int32_t>(count);
}

}  // namespace mh
