// Keys and values that grow: appended in place or paged, in f32, bf16, f16 or int8.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/ops/attention/attention.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct KVCacheOptions {
  int64_t batch = 1, key_heads = 1, key_width = 64, value_width = 64;
  int64_t capacity = 0;  // keys per sequence (appended), or of all sequences together (paged)
  DType dtype = DType::f32;
  int64_t page = 0;  // 0: one run of memory per sequence; else keys per page, taken from a pool as sequences grow
  Device device{};
};

// int8 holds round(x / scale) with one scale per key head and token, scale = max|x| / 127; a row that is not finite
// reads back as NaN.
class KVCache {
 public:
  // Throws: invalid_argument, with the sizes, where they make no cache or overflow.
  explicit KVCache(const KVCacheOptions& options);
  KVCache(KVCache&&) = default;
  KVCache& operator=(KVCache&&) = default;

  // Adds k (B, Hkv, T, Dk), v (B, Hkv, T, Dv), of any float type, behind what is there. Throws: invalid_argument where
  // capacity or pages run out, unsupported where k or v is traced on an open tape; nothing is written then.
  void append(const Tensor& k, const Tensor& v);
  // The same for chosen sequences: row n of k and v belongs to sequence sequences[n].
  void append(const Tensor& k, const Tensor& v, const std::vector<int32_t>& sequences);
  // Forgets the keys of sequence b past `length`, and gives its pages back. Throws: invalid_argument past what is held.
  void truncate(int64_t b, int64_t length);
  // Makes sequence `to` a copy of sequence `from` (beam search); pages are shared until one of them grows.
  void copy(int64_t from, int64_t to);

  // Makes the sequences those that `parents` names, in its order: a sequence may be named often (it is continued in
  // several ways) or not at all (its pages go back). The batch becomes as large as the list. Paged: no keys are copied.
  // Throws: invalid_argument where a name is no sequence; nothing has changed then.
  void choose(const std::vector<int32_t>& parents);

  const std::vector<int32_t>& lengths() const { return lengths_; }
  const KVCacheOptions& options() const { return options_; }
  int64_t bytes() const;

  Tensor keys, values;              // (B, Hkv, capacity, D), or paged (pages, Hkv, page, D)
  Tensor key_scales, value_scales;  // int8: f32, the same shape without D
  Tensor pages;                     // paged: i32 (B, at least the most pages of a sequence), the CPU's on every device

 private:
  void check_rows(const Tensor& k, const Tensor& v, const std::vector<int32_t>& sequences) const;
  int64_t pages_to_grow(const std::vector<int32_t>& sequences, int64_t count) const;
  void make_room(int64_t b, int64_t count);
  void widen_table(int64_t columns);
  int32_t take_page();
  void leave_page(int32_t page);
  void choose_pages(const std::vector<int32_t>& parents);

  KVCacheOptions options_;
  std::vector<int32_t> lengths_;
  std::vector<int32_t> free_pages_, page_users_;
};

// Attention of q (B, H, Tq, Dk), f32, bf16 or f16, over what the cache holds; query i of sequence b sits at
// lengths[b] - Tq + i unless the mask gives an offset. Dropout and score mixing are refused. Without a gradient: a
// backward pass through the result throws.
AttentionResult attention(const Tensor& q, const KVCache& cache, const AttentionOptions& options = {});
Explanation explain(const Tensor& q, const KVCache& cache, const AttentionOptions& options = {});

}  // namespace mh
