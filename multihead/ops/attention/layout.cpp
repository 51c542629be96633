// Checks q, k, v and the boundaries of packed batches; lists the sequences of a call.
#include <algorithm>
#include <initializer_list>
#include <limits>

#include "multihead/ops/attention/plan.h"

namespace mh::detail {
namespace {

constexpr int64_t kMaxWidth = 512;
// Lengths, boundaries, top keys and the dropout counter are 32 bits wide.
constexpr int64_t kMaxLength = std::numeric_limits<int32_t>::max();

bool product_fits(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor == 0) return true;
  }
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return false;
  }
  return true;
}

void check_operand(std::string_view op, std::string_view what, const Tensor& t, int rank, const CallShapes& shapes) {
  check(static_cast<bool>(t), "{}: {} has no memory; expected rank {}; {}", op, what, rank, shapes);
  check(t.rank() == rank, "{}: {} has rank {}; expected {}; {}", op, what, t.rank(),
        rank == 4 ? "(B, H, T, D)" : "(T, H, D) for a packed batch", shapes);
  if (t.dtype() != DType::f32 && t.dtype() != DType::bf16 && t.dtype() != DType::f16) {
    fail(ErrorKind::unsupported, "{}: {} holds {}; expected f32, bf16 or f16; {}", op, what, name(t.dtype()), shapes);
  }
  const View& view = t.view();
  const int64_t width = view.size[rank - 1], step = view.stride[rank - 1];
  check(width >= 1 && width <= kMaxWidth, "{}: a head of {} is {} wide; expected 1 to {}; {}", op, what, width,
        kMaxWidth, shapes);
  check(width == 1 || step == 1, "{}: {} has a last stride of {}; expected 1; {}", op, what, step, shapes);
  for (int axis = 0; axis < rank; ++axis) {
    check(view.size[axis] <= kMaxLength, "{}: axis {} of {} is {} long; expected at most {}; {}", op, axis, what,
          view.size[axis], kMaxLength, shapes);
  }
}

void check_heads(const AttentionPlan& plan, const CallShapes& shapes) {
  const AttentionSizes& s = plan.size;
  check(s.H >= 1 && s.Hkv >= 1, "{}: {} query heads and {} key heads; expected at least one of each; {}", plan.op, s.H,
        s.Hkv, shapes);
  check(s.H % s.Hkv == 0, "{}: {} key heads do not divide {} query heads; {}", plan.op, s.Hkv, s.H, shapes);
  const int64_t widest = std::max(s.Dk, s.Dv);
  check(product_fits({s.batch, s.H, s.rows, widest, 8}) && product_fits({s.batch, s.Hkv, s.keys, widest, 8}) &&
            product_fits({s.sequences, s.H, s.Tq + s.Tk, 8}),
        "{}: the sizes multiply past 63 bits; expected arrays that can be addressed; {}", plan.op, shapes);
}

Tensor check_boundaries(const AttentionPlan& plan, std::string_view what, const Tensor& t, const CallShapes& shapes) {
  check(static_cast<bool>(t), "{}: {} has no memory; expected i32 (sequences + 1); {}", plan.op, what, shapes);
  check(t.dtype() == DType::i32 && t.rank() == 1 && t.size(0) >= 1, "{}: {} is {} {}; expected i32 (sequences + 1); {}",
        plan.op, what, name(t.dtype()), t.shape(), shapes);
  const Tensor list = readable(t);
  const View& view = list.view();
  check(*view.at<int32_t>(0) == 0, "{}: {} begins with {}; expected 0; {}", plan.op, what, *view.at<int32_t>(0),
        shapes);
  return list;
}

void list_packed(AttentionPlan& plan, const Packed& packed, const CallShapes& shapes) {
  const Tensor q_list = check_boundaries(plan, "cu_seqlens_q", packed.cu_seqlens_q, shapes);
  const Tensor k_list = check_boundaries(plan, "cu_seqlens_k", packed.cu_seqlens_k, shapes);
  const View &cu_q = q_list.view(), &cu_k = k_list.view();
  AttentionSizes& s = plan.size;
  check(cu_q.size[0] == cu_k.size[0],
        "{}: cu_seqlens_q has {} entries and cu_seqlens_k {}; expected the same number; {}", plan.op, cu_q.size[0],
        cu_k.size[0], shapes);
  s.sequences = cu_q.size[0] - 1;
  plan.sequences.resize(static_cast<size_t>(s.sequences));
  for (int64_t b = 0; b < s.sequences; ++b) {
    const int64_t q0 = *cu_q.at<int32_t>(b), q1 = *cu_q.at<int32_t>(b + 1);
    const int64_t k0 = *cu_k.at<int32_t>(b), k1 = *cu_k.at<int32_t>(b + 1);
    check(q1 >= q0, "{}: cu_seqlens_q falls from {} to {} at entry {}; expected boundaries that never decrease; {}",
          plan.op, q0, q1, b + 1, shapes);
    check(k1 >= k0, "{}: cu_seqlens_k falls from {} to {} at entry {}; expected boundaries that never decrease; {}",
          plan.op, k0, k1, b + 1, shapes);
    plan.sequences[b] = {.batch = 0, .q_begin = q0, .q_len = q1 - q0, .k_begin = k0, .k_len = k1 - k0};
    s.Tq = std::max(s.Tq, q1 - q0);
    s.Tk = std::max(s.Tk, k1 - k0);
  }
  const int64_t last_q = *cu_q.at<int32_t>(s.sequences), last_k = *cu_k.at<int32_t>(s.sequences);
  check(last_q == s.rows, "{}: cu_seqlens_q ends with {}; expected the {} rows of q; {}", plan.op, last_q, s.rows,
        shapes);
  check(last_k == s.keys, "{}: cu_seqlens_k ends with {}; expected the {} rows of k; {}", plan.op, last_k, s.keys,
        shapes);
}

}  // namespace

void plan_layout(AttentionPlan& plan, const AttentionInputs& in) {
  const CallShapes shapes{&in.q, &in.k, &in.v};
  AttentionSizes& s = plan.size;
  s.packed = in.options.packed.has_value();
  const int rank = s.packed ? 3 : 4;
  const bool values = static_cast<bool>(in.v);
  check_operand(plan.op, "q", in.q, rank, shapes);
  check_operand(plan.op, "k", in.k, rank, shapes);
  if (values) check_operand(plan.op, "v", in.v, rank, shapes);
  const View &q = in.q.view(), &k = in.k.view(), &v = values ? in.v.view() : k;
  check(k.dtype == q.dtype && v.dtype == q.dtype, "{}: q holds {}, k {} and v {}; expected one type; {}", plan.op,
        name(q.dtype), name(k.dtype), name(v.dtype), shapes);
  const int batch = 0, heads = 1, rows = s.packed ? 0 : 2, width = rank - 1;
  check(q.size[width] == k.size[width], "{}: heads of q are {} wide and those of k {}; expected one width; {}", plan.op,
        q.size[width], k.size[width], shapes);
  check(k.size[heads] == v.size[heads], "{}: k has {} heads and v {}; expected the same number; {}", plan.op,
        k.size[heads], v.size[heads], shapes);
  check(k.size[rows] == v.size[rows], "{}: k has {} rows and v {}; expected the same number; {}", plan.op, k.size[rows],
        v.size[rows], shapes);
  check(s.packed || (k.size[batch] == q.size[batch] && v.size[batch] == q.size[batch]),
        "{}: the batches of q, k and v are {}, {} and {}; expected one; {}", plan.op, q.size[batch], k.size[batch],
        v.size[batch], shapes);
  s.batch = s.packed ? 1 : q.size[batch];
  s.H = q.size[heads];
  s.Hkv = k.size[heads];
  s.rows = q.size[rows];
  s.keys = k.size[rows];
  s.Dk = q.size[width];
  s.Dv = v.size[width];
  if (!s.packed) {
    s.sequences = s.batch;
    s.Tq = s.rows;
    s.Tk = s.keys;
  }
  check_heads(plan, shapes);

  plan.q = heads_view(s, in.q);
  plan.kv.k = heads_view(s, in.k);
  if (values) plan.kv.v = heads_view(s, in.v);
  if (s.packed) {
    list_packed(plan, *in.options.packed, shapes);
    return;
  }
  plan.sequences.resize(static_cast<size_t>(s.batch));
  for (int64_t b = 0; b < s.batch; ++b) plan.sequences[b] = {.batch = b, .q_len = s.Tq, .k_len = s.Tk};
}

void plan_cache_layout(AttentionPlan& plan, const Tensor& q, const KVCache& cache) {
  const CallShapes shapes{&q, &cache.keys, &cache.values};
  const KVCacheOptions& o = cache.options();
  AttentionSizes& s = plan.size;
  check_operand(plan.op, "q", q, 4, shapes);
  check(q.size(0) == o.batch, "{}: q has a batch of {} and the cache {} sequences; expected the same number; {}",
        plan.op, q.size(0), o.batch, shapes);
  check(q.size(-1) == o.key_width, "{}: heads of q are {} wide and those of the cache {}; expected one width; {}",
        plan.op, q.size(-1), o.key_width, shapes);
  const int64_t longest = o.batch == 0 ? 0 : *std::max_element(cache.lengths().begin(), cache.lengths().end());
  s = {.sequences = o.batch,
       .H = q.size(1),
       .Hkv = o.key_heads,
       .Tq = q.size(2),
       .Tk = longest,
       .Dk = o.key_width,
       .Dv = o.value_width,
       .batch = o.batch,
       .rows = q.size(2),
       .keys = longest};
  check_heads(plan, shapes);
  plan.q = q.view();
  const Tensor pages = cache.pages.to(plan.device);
  if (!plan.device.is_cpu()) plan.held.push_back(pages);
  plan.kv = {.k = cache.keys.view(),
             .v = cache.values.view(),
             .k_scale = cache.key_scales.view(),
             .v_scale = cache.value_scales.view(),
             .pages = pages.view()};
  plan.sequences.resize(static_cast<size_t>(s.batch));
  for (int64_t b = 0; b < s.batch; ++b) plan.sequences[b] = {.batch = b, .q_len = s.Tq, .k_len = cache.lengths()[b]};
}

}  // namespace mh::detail
