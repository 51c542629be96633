// Checks what happens to the scores of a call: similarity, cap, bias, sink, dropout and mixing.
#include <algorithm>
#include <cmath>

#include "multihead/base/out_of_memory.h"
#include "multihead/ops/attention/plan.h"
#include "multihead/ops/run.h"

namespace mh::detail {
namespace {

// 16 GiB of bias over distances: positions further apart than that come from a mistaken offset.
constexpr int64_t kMaxRelative = int64_t{1} << 32;

View per_head_view(const AttentionPlan& plan, std::string_view what, const Tensor& t, const CallShapes& shapes) {
  check(static_cast<bool>(t), "{}: {} has no memory; expected f32 ({}), one per head; {}", plan.op, what, plan.size.H,
        shapes);
  check(t.dtype() == DType::f32 && t.rank() == 1 && t.size(0) == plan.size.H,
        "{}: {} is {} {}; expected f32 ({}), one per head; {}", plan.op, what, name(t.dtype()), t.shape(), plan.size.H,
        shapes);
  return t.view();
}

std::vector<float> per_head(const AttentionPlan& plan, std::string_view what, const Tensor& t,
                            const CallShapes& shapes) {
  per_head_view(plan, what, t, shapes);
  const Tensor here = readable(t);
  const View& view = here.view();
  std::vector<float> values(static_cast<size_t>(plan.size.H));
  for (int64_t h = 0; h < plan.size.H; ++h) values[h] = *view.at<float>(h);
  return values;
}

void plan_similarity(AttentionPlan& plan, const Similarity& similarity, const CallShapes& shapes) {
  const auto constant = [&](std::string_view what, float value) {
    check(std::isfinite(value), "{}: {} is {}; expected a finite number; {}", plan.op, what, value, shapes);
    plan.scale.assign(static_cast<size_t>(plan.size.H), value);
  };
  const float by_width = 1.0f / std::sqrt(static_cast<float>(plan.size.Dk));
  if (const auto* dot = std::get_if<DotSimilarity>(&similarity)) {
    plan.scores.similarity = kernels::Similarity::dot;
    constant("scale", dot->scale.value_or(by_width));
  } else if (const auto* cosine = std::get_if<CosineSimilarity>(&similarity)) {
    plan.scores.similarity = kernels::Similarity::cosine;
    if (cosine->taus) {
      plan.scale = per_head(plan, "taus", cosine->taus, shapes);
    } else {
      constant("tau", cosine->tau);
    }
  } else {
    plan.scores.similarity = kernels::Similarity::euclidean;
    constant("scale", std::get<EuclideanSimilarity>(similarity).scale.value_or(by_width));
  }
  plan.scores.scale = placed(plan.scale, plan.device, plan.held);
}

void plan_distances(AttentionPlan& plan, const CallShapes& shapes) {
  int64_t lowest = 0, highest = -1;
  bool first = true;
  for (const kernels::Sequence& sequence : plan.sequences) {
    if (sequence.q_len == 0 || sequence.k_len == 0) continue;
    const int64_t low = sequence.position - (sequence.k_len - 1), high = sequence.position + sequence.q_len - 1;
    lowest = first ? low : std::min(lowest, low);
    highest = first ? high : std::max(highest, high);
    first = false;
  }
  plan.distances = {lowest, highest - lowest + 1};
  int64_t total = 0;
  check(!__builtin_mul_overflow(plan.distances.count, plan.size.H, &total) && total <= kMaxRelative,
        "{}: queries and keys lie {} distances apart for {} heads; expected positions nearer to the keys; {}", plan.op,
        plan.distances.count, plan.size.H, shapes);
}

void plan_alibi(AttentionPlan& plan, const AlibiBias& alibi, const CallShapes& shapes) {
  plan.scores.slopes = per_head_view(plan, "slopes", alibi.slopes, shapes);
  plan_distances(plan, shapes);
}

void plan_t5(AttentionPlan& plan, const T5Bias& t5, const CallShapes& shapes) {
  const Tensor& table = t5.table;
  check(static_cast<bool>(table), "{}: the T5 table has no memory; expected f32 (buckets, {}); {}", plan.op,
        plan.size.H, shapes);
  check(table.dtype() == DType::f32 && table.rank() == 2 && table.size(1) == plan.size.H,
        "{}: the T5 table is {} {}; expected f32 (buckets, {}); {}", plan.op, name(table.dtype()), table.shape(),
        plan.size.H, shapes);
  const int64_t buckets = table.size(0);
  const int64_t least = t5.bidirectional ? 4 : 2;
  check(buckets >= least && buckets % 2 == 0, "{}: the T5 table has {} buckets; expected an even number from {}; {}",
        plan.op, buckets, least, shapes);
  const int64_t exact = t5.bidirectional ? buckets / 4 : buckets / 2;
  check(t5.max_distance > exact,
        "{}: the largest distance of the T5 bias is {}; expected more than the {} distances with a bucket each; {}",
        plan.op, t5.max_distance, exact, shapes);
  plan.buckets = {buckets, t5.bidirectional, t5.max_distance};
  plan.table = table.view();
  plan_distances(plan, shapes);
}

void plan_bias(AttentionPlan& plan, const std::vector<Bias>& biases, const CallShapes& shapes) {
  for (size_t n = 0; n < biases.size(); ++n) {
    if (const auto* dense = std::get_if<DenseBias>(&biases[n])) {
      check(plan.dense_bias < 0, "{}: two dense biases; expected one at most, added up by the caller; {}", plan.op,
            shapes);
      plan.dense_bias = static_cast<int>(n);
      plan.scores.bias = pair_view(plan.op, "bias", dense->values, plan.size);
      const DType type = dense->values.dtype();
      check(type == DType::f32 || type == DType::bf16 || type == DType::f16,
            "{}: bias holds {}; expected f32, bf16 or f16; {}", plan.op, name(type), shapes);
      continue;
    }
    check(plan.relative_bias < 0, "{}: two biases by distance; expected ALiBi or T5, once; {}", plan.op, shapes);
    plan.relative_bias = static_cast<int>(n);
    if (const auto* alibi = std::get_if<AlibiBias>(&biases[n])) {
      plan_alibi(plan, *alibi, shapes);
    } else {
      plan_t5(plan, std::get<T5Bias>(biases[n]), shapes);
    }
  }
}

void plan_mixing(AttentionPlan& plan, const ScoreMix& mix, const CallShapes& shapes) {
  const auto matrix = [&](std::string_view what, const Tensor& t, int64_t size) {
    check(t && t.dtype() == DType::f32 && t.rank() == 2 && t.size(0) == size && t.size(1) == size,
          "{}: {} is {} {}; expected f32 ({}, {}); {}", plan.op, what, name(t.dtype()), t.shape(), size, size, shapes);
    return t.view();
  };
  if (const auto* heads = std::get_if<HeadMix>(&mix)) {
    plan.mixing = {kernels::Mixing::heads, matrix("the mix over heads", heads->matrix, plan.size.H)};
  } else if (const auto* keys = std::get_if<KeyMix>(&mix)) {
    check(plan.scores.ahead == kernels::kUnbounded && !plan.scores.has_prefix,
          "{}: a mix over keys together with a causal mask, a prefix or a window would let later keys leak; expected "
          "no bound on the keys ahead; {}",
          plan.op, shapes);
    plan.mixing = {kernels::Mixing::keys, matrix("the mix over keys", keys->matrix, plan.size.Tk)};
  }
}

}  // namespace

void plan_scores(AttentionPlan& plan, const AttentionOptions& options, const CallShapes& shapes) {
  const Dropout& dropout = options.dropout;
  check(dropout.p >= 0 && dropout.p <= 1, "{}: dropout p is {}; expected 0 to 1; {}", plan.op, dropout.p, shapes);
  check(options.cap >= 0 && std::isfinite(options.cap),
        "{}: cap is {}; expected 0 for none, or a finite number above; {}", plan.op, options.cap, shapes);
  plan.scores.cap = options.cap;
  plan.scores.dropout_threshold = static_cast<uint32_t>(std::lround(static_cast<double>(dropout.p) * 65536));
  plan.scores.dropout_seed = dropout.seed;
  plan_similarity(plan, options.similarity, shapes);
  if (options.sink) {
    plan.sink = per_head(plan, "sink", options.sink, shapes);
    plan.scores.sink = placed(plan.sink, plan.device, plan.held);
  }
  plan_mixing(plan, options.score_mix, shapes);
  plan_bias(plan, options.bias, shapes);
}

void fill_relative(AttentionPlan& plan, bool decoding) {
  if (plan.relative_bias < 0 || (decoding && plan.scores.slopes)) return;
  kernels::Distances distances = plan.distances;
  if (decoding) {
    const int64_t far = plan.buckets.max_distance, last = distances.min + distances.count - 1;
    distances.min = std::clamp(distances.min, -far, far);
    distances.count = std::clamp(last, -far, far) - distances.min + 1;
  }
  const int64_t entries = distances.count * plan.size.H;
  try {
    plan.relative = empty(Shape{entries}, DType::f32, plan.device);
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(plan.op, e.bytes(), "the biases of all distances");
  }
  run(&Table::relative_bias_forward,
      {.slopes = plan.scores.slopes,
       .table = plan.table,
       .buckets = plan.buckets,
       .distances = distances,
       .relative = plan.relative.view().as<float>()},
      plan.relative);
  plan.scores.relative = entries > 0 ? plan.relative.view().as<float>() : nullptr;
  plan.scores.relative_min = distances.min;
  plan.scores.relative_count = distances.count;
}

}  // namespace mh::detail
