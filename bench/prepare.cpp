// Makes a case ready to run: its tensors, its options, the call, and what bounds it.
#include <algorithm>
#include <memory>

#include "bench/run.h"
#include "multihead/check/limits.h"
#include "multihead/ops/attention/attention.h"
#include "multihead/ops/attention/kv_cache.h"
#include "multihead/ops/products/matmul.h"

namespace mh::bench {
namespace {

Bound compute_bound(DType dtype) {
  if (dtype != DType::bf16) return Bound::multiply_adds;
  return has_tiles() ? Bound::tile_products : has_pair_products() ? Bound::pair_products : Bound::multiply_adds;
}

int64_t bytes_of(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.count() * size_of(tensor.dtype());
  return bytes;
}

}  // namespace

Prepared prepare_attention(const Case& c) {
  const Sizes& s = c.sizes;
  const Tensor q = randn({s.B, s.H, s.Tq, s.Dk}, 1, c.dtype);
  const Tensor k = randn({s.B, s.Hkv, s.Tk, s.Dk}, 2, c.dtype);
  const Tensor v = randn({s.B, s.Hkv, s.Tk, s.Dv}, 3, c.dtype);
  const AttentionOptions options = feature(c.feature).options(s, c.dtype);
  const AttentionResult result{.o = empty({s.B, s.H, s.Tq, s.Dv}, c.dtype), .lse = empty({s.B, s.H, s.Tq})};

  Prepared prepared{.subject = {}, .reference = {compute_bound(c.dtype), {}}, .unit = "GFLOP/s"};
  prepared.subject.work = operations(c);
  if (c.pass == Pass::forward) {
    prepared.subject.run = [=] { attention_into(result, q, k, v, options); };
    return prepared;
  }
  attention_into(result, q, k, v, options);
  const Tensor d_o = randn({s.B, s.H, s.Tq, s.Dv}, 4, c.dtype);
  const AttentionCall call{q, k, v, result};
  const AttentionGradients gradients = attention_backward(call, d_o, {}, options);
  prepared.subject.run = [=] { attention_backward_into(gradients, call, {d_o}, options); };
  return prepared;
}

Prepared prepare_decode(const Case& c) {
  const Sizes& s = c.sizes;
  auto cache = std::make_shared<KVCache>(KVCacheOptions{
      .batch = s.B, .key_heads = s.Hkv, .key_width = s.Dk, .value_width = s.Dv, .capacity = s.Tk, .dtype = c.dtype});
  // The same keys again and again: drawing 256 MiB of them would take longer than the measurement.
  constexpr int64_t kBlock = 4096;
  const Tensor k = randn({s.B, s.Hkv, kBlock, s.Dk}, 2), v = randn({s.B, s.Hkv, kBlock, s.Dv}, 3);
  for (int64_t at = 0; at < s.Tk; at += kBlock) {
    const int64_t count = std::min(kBlock, s.Tk - at);
    cache->append(k.slice(2, 0, count), v.slice(2, 0, count));
  }
  const DType query_type = c.dtype == DType::i8 ? DType::f32 : c.dtype;
  const Tensor q = randn({s.B, s.H, s.Tq, s.Dk}, 1, query_type);

  Prepared prepared{.subject = {}, .reference = {Bound::plain_read, {cache->keys, cache->values}}, .unit = "GB/s"};
  if (c.dtype == DType::i8) {
    prepared.reference.memory.push_back(cache->key_scales);
    prepared.reference.memory.push_back(cache->value_scales);
  }
  prepared.subject.work = static_cast<double>(bytes_of(prepared.reference.memory));
  prepared.subject.run = [=] { attention(q, *cache); };
  return prepared;
}

Prepared prepare_gemm(const Case& c) {
  // Up to so many rows a product waits for its weights, not for its multiply-adds.
  constexpr int64_t kFewRows = 4;
  const int64_t M = c.sizes.Tq, N = c.sizes.Tk, K = c.sizes.Dk;
  const Tensor a = randn({M, K}, 1, c.dtype), w = randn({K, N}, 2, c.dtype);
  const PackedWeights packed = prepack(w);

  Prepared prepared{.subject = {}, .reference = {compute_bound(c.dtype), {}}, .unit = "GFLOP/s"};
  prepared.subject.work = operations(c);
  if (M <= kFewRows) {
    prepared.reference = {Bound::plain_read, {w}};
    prepared.subject.work = static_cast<double>(bytes_of({w}));
    prepared.unit = "GB/s";
  }
  prepared.subject.run = [=] { matmul(a, packed); };
  return prepared;
}

}  // namespace mh::bench
