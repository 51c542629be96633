// What a call would run on, why not on something faster, and what it costs.
#include <algorithm>

#include "multihead/base/parallel.h"
#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/ops/attention/plan.h"
#include "multihead/ops/attention/run.h"

namespace mh {
namespace {

using detail::AttentionPlan;
using detail::Route;

// Pairs of one head inside the band, lengths and prefix. Documents, dense masks and bias may drop more.
int64_t kept_pairs(const AttentionPlan& plan) {
  const kernels::Scores& scores = plan.scores;
  int64_t pairs = 0;
  for (const kernels::Sequence& s : plan.sequences) {
    const bool banded =
        scores.behind != kernels::kUnbounded || scores.ahead != kernels::kUnbounded || scores.has_prefix;
    if (!banded) {
      pairs += s.q_len * s.k_len;
      continue;
    }
    for (int64_t i = 0; i < s.q_len; ++i) {
      const int64_t position = s.position + i;
      const int64_t low = scores.behind == kernels::kUnbounded ? 0 : std::max<int64_t>(position - scores.behind, 0);
      int64_t high = scores.ahead == kernels::kUnbounded ? s.k_len - 1 : std::min(position + scores.ahead, s.k_len - 1);
      if (scores.has_prefix) high = std::min(high, std::max(position, s.prefix - 1));
      pairs += std::max<int64_t>(high - low + 1, 0);
    }
  }
  return pairs;
}

int64_t elements(const View& view) {
  if (!view) return 0;
  int64_t count = 1;
  for (int axis = 0; axis < view.rank; ++axis) count *= view.stride[axis] == 0 ? 1 : view.size[axis];
  return count * size_of(view.dtype);
}

int64_t touched_bytes(const AttentionPlan& plan, DType type) {
  const detail::AttentionSizes& s = plan.size;
  int64_t keys = 0;
  for (const kernels::Sequence& sequence : plan.sequences) keys += sequence.k_len;
  const bool quantised = plan.kv.k.dtype == DType::i8;
  const int64_t per_key = (s.Dk + s.Dv) * size_of(plan.kv.k.dtype) + (quantised ? 2 * size_of(DType::f32) : 0);
  int64_t bytes =
      s.batch * s.H * s.rows * ((s.Dk + s.Dv) * size_of(type) + size_of(DType::f32)) + keys * s.Hkv * per_key;
  bytes += elements(plan.scores.bias) + elements(plan.scores.q_documents) + elements(plan.scores.k_documents);
  for (int n = 0; n < plan.scores.dense_count; ++n) bytes += elements(plan.scores.dense[n].where);
  return bytes + plan.relative_count() * size_of(DType::f32) + elements(plan.mixing.matrix);
}

// The threads' scratch grows by blocks of 2 MiB.
int64_t scratch_blocks(int64_t bytes) {
  constexpr int64_t block = int64_t{2} << 20;
  return (bytes + block - 1) / block * block;
}

// Results of runs of keys that are joined at the end: decode's chunks, or 8192 keys each where forward has 64 rows or
// less.
int64_t partial_bytes(const AttentionPlan& plan, Route route) {
  int64_t rows = 0;
  for (const kernels::Sequence& s : plan.sequences) {
    if (route != Route::forward) rows += kernels::decode_chunks(s.k_len) * s.q_len;
    if (s.q_len <= 64 && s.k_len >= 16384) rows += (s.k_len + 8191) / 8192 * 128;
  }
  return rows * plan.size.H * (plan.size.Dv + 2) * size_of(DType::f32);
}

// An upper estimate: each thread widens a block of 512 keys and holds its scores; tiles and pairs pack keys and values.
int64_t scratch_bytes(const AttentionPlan& plan, Route route) {
  const detail::AttentionSizes& s = plan.size;
  const int64_t f32 = size_of(DType::f32);
  if (route == Route::composed) {
    const int64_t rows = kernels::composed_rows(s.H, s.Tq, s.Tk);
    return plan.bytes() + f32 * (2 * s.H * rows * s.Tk + s.H * rows * s.Dk + 2 * s.Hkv * s.Tk * (s.Dk + s.Dv));
  }
  int64_t shared = partial_bytes(plan, route) + static_cast<int64_t>(plan.sequences.size()) * 64;
  const bool packs = kernels::rung() == kernels::Rung::amx || kernels::rung() == kernels::Rung::avx512_bf16;
  if (packs && plan.q.dtype == DType::bf16) {
    shared += s.batch * s.Hkv * (s.keys + 64) * (s.Dk + s.Dv + 64) * size_of(DType::bf16);
  }
  const int64_t own = scratch_blocks(f32 * (512 * (s.Dk + s.Dv + 256) + 128 * (s.Dk + s.Dv)));
  return plan.bytes() + threads() * own + scratch_blocks(shared);
}

std::string why_not_faster(const AttentionPlan& plan, Route route) {
  if (route == Route::composed) {
    return plan.mixing.kind != kernels::Mixing::none
               ? "score mixing needs whole rows of scores, which only the composed path holds"
               : "this device has no attention_forward kernel";
  }
  std::vector<std::string> reasons;
  const int64_t rows = plan.size.H / plan.size.Hkv * plan.size.Tq;
  if (route == Route::forward && rows <= kernels::kDecodeMostRows && !plan.size.packed) {
    reasons.push_back(kernels::kernels_of(plan.device).attention_decode
                          ? "attention_decode takes dot similarity without dropout alone"
                          : "this device has no attention_decode kernel");
  }
  if (route == Route::split)
    reasons.push_back("sequences of few rows run on attention_decode, the others on attention_forward");
  std::string_view highest;
  for (const kernels::RungStatus& status : kernels::rungs()) {
    if (status.usable) highest = kernels::name(status.rung);
    if (status.rung == kernels::Rung::amx && !status.usable && plan.q.dtype == DType::bf16) {
      reasons.push_back(fmt::format("the amx rung would multiply bf16 faster, but {}", status.why));
    }
  }
  if (kernels::kernels_of(plan.device).rung != highest)
    reasons.push_back(
        fmt::format("the rung {} is in use though {} is usable", kernels::kernels_of(plan.device).rung, highest));
  return fmt::format("{}", fmt::join(reasons, "; "));
}

Explanation explain_plan(AttentionPlan plan, DType type) {
  const Route route = detail::route_of(kernels::kernels_of(plan.device), plan);
  detail::fill_relative(plan, route == Route::decode);
  Explanation out;
  out.composed = route == Route::composed;
  out.kernel = out.composed ? "composed" : route == Route::decode ? "attention_decode" : "attention_forward";
  out.rung = std::string(kernels::kernels_of(plan.device).rung);
  out.why = why_not_faster(plan, route);
  const int64_t H = plan.size.H;
  const int64_t mixing = plan.mixing.kind == kernels::Mixing::heads  ? H
                         : plan.mixing.kind == kernels::Mixing::keys ? plan.size.Tk
                                                                     : 0;
  out.flops = 2 * H * kept_pairs(plan) * (plan.size.Dk + plan.size.Dv + mixing);
  out.bytes = touched_bytes(plan, type);
  out.scratch = scratch_bytes(plan, route);
  return out;
}

}  // namespace

std::string Explanation::text() const {
  return fmt::format("{} on {}: {} FLOP, {} bytes read or written, about {} bytes of scratch{}{}", kernel, rung, flops,
                     bytes, scratch, why.empty() ? "" : "; ", why);
}

Explanation explain(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check(static_cast<bool>(v), "explain: v has no memory; expected values for the keys; {}",
        detail::CallShapes{&q, &k, &v});
  return explain_plan(detail::plan_attention("explain", {q, k, v, options}), q.dtype());
}

Explanation explain(const Tensor& q, const KVCache& cache, const AttentionOptions& options) {
  return explain_plan(detail::plan_attention("explain", q, cache, options), q.dtype());
}

}  // namespace mh
