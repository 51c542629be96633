// The steps of a plan in order, and the checks that outputs share.
#include "multihead/ops/attention/plan.h"

#include <algorithm>
#include <array>

#include "multihead/base/checked_math.h"
#include "multihead/base/out_of_memory.h"
#include "multihead/ops/run.h"

namespace mh::detail {
namespace {

// Every tensor the options hold, in any order. Without the lists, of one number per sequence, which may lie on the CPU
// for a call on another device.
template <class F>
void for_each_tensor(const AttentionOptions& options, bool lists, F&& f) {
  const Mask& mask = options.mask;
  for (const Mask::Dense& dense : mask.dense) f(dense.where);
  for (const Tensor* t : {&mask.query_documents, &mask.key_documents, &options.sink}) f(*t);
  for (const Bias& bias : options.bias) {
    if (const auto* dense = std::get_if<DenseBias>(&bias)) f(dense->values);
    if (const auto* alibi = std::get_if<AlibiBias>(&bias)) f(alibi->slopes);
    if (const auto* t5 = std::get_if<T5Bias>(&bias)) f(t5->table);
  }
  if (const auto* cosine = std::get_if<CosineSimilarity>(&options.similarity)) f(cosine->taus);
  if (const auto* heads = std::get_if<HeadMix>(&options.score_mix)) f(heads->matrix);
  if (const auto* keys = std::get_if<KeyMix>(&options.score_mix)) f(keys->matrix);
  if (!lists) return;
  for (const Tensor& lengths : mask.lengths) f(lengths);
  f(mask.offsets);
  f(mask.prefixes);
  if (options.packed) {
    f(options.packed->cu_seqlens_q);
    f(options.packed->cu_seqlens_k);
  }
}

// First and last byte a view reaches: where two do not meet, no search for a common element is needed, which takes ten
// times as long.
struct Extent {
  explicit Extent(const View& view) : first(reinterpret_cast<intptr_t>(view.data)), last(first) {
    for (int axis = 0; axis < view.rank; ++axis) {
      const intptr_t reach = view.stride[axis] * (view.size[axis] - 1) * size_of(view.dtype);
      (reach < 0 ? first : last) += reach;
    }
    last += size_of(view.dtype) - 1;
  }
  bool apart(const View& other) const {
    const Extent theirs(other);
    return last < theirs.first || theirs.last < first;
  }

  intptr_t first, last;
};

// What `steps` make of an empty plan. The lists of a call whose arrays repeat one element may be longer than memory.
template <class Steps>
AttentionPlan planned(std::string_view op, const Tensor& q, Steps&& steps) {
  AttentionPlan plan;
  plan.op = op;
  plan.device = q.device();
  const auto each = static_cast<int64_t>(sizeof(kernels::Sequence));
  const int64_t bytes = q && q.rank() > 0 ? checked_multiply(q.size(0), each).value_or(INT64_MAX) : each;
  within_memory(op, static_cast<size_t>(bytes), "the lists of sequences and documents", [&] { steps(plan); });
  plan.placed_sequences = placed(plan.sequences, plan.device, plan.held);
  return plan;
}

}  // namespace

std::string to_string(const CallShapes& shapes) {
  std::string text;
  const auto add = [&](const char* label, const Tensor* t) {
    if (t && *t) text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", label, to_string(t->shape()));
  };
  add("q", shapes.q);
  add("k", shapes.k);
  add("v", shapes.v);
  return text;
}

Tensor readable(const Tensor& list) { return list.to(Device{}); }

int64_t AttentionPlan::bytes() const {
  return static_cast<int64_t>(sequences.size() * sizeof(kernels::Sequence) +
                              (scale.size() + static_cast<size_t>(relative_count()) + sink.size()) * sizeof(float) +
                              (query_documents.size() + document_begin.size() + document_end.size()) * sizeof(int32_t));
}

AttentionPlan plan_attention(std::string_view op, const AttentionInputs& inputs) {
  const CallShapes shapes{&inputs.q, &inputs.k, &inputs.v};
  return planned(op, inputs.q, [&](AttentionPlan& plan) {
    plan_layout(plan, inputs);
    check_devices(op, {&inputs.q, &inputs.k, &inputs.v});
    for_each_tensor(inputs.options, false, [&](const Tensor& t) { check_devices(op, {&inputs.q, &t}); });
    plan_masks(plan, inputs.options.mask, shapes);
    plan_scores(plan, inputs.options, shapes);
  });
}

AttentionPlan plan_attention(std::string_view op, const Tensor& q, const KVCache& cache,
                             const AttentionOptions& options) {
  const CallShapes shapes{&q, &cache.keys, &cache.values};
  check(!options.packed, "{}: a packed batch over a cache; expected one row of sequences per cache entry; {}", op,
        shapes);
  check(options.dropout.p == 0, "{}: dropout over a cache; expected none in decoding; {}", op, shapes);
  check(std::holds_alternative<std::monostate>(options.score_mix), "{}: score mixing over a cache is not supported; {}",
        op, shapes);
  return planned(op, q, [&](AttentionPlan& plan) {
    plan_cache_layout(plan, q, cache);
    check_devices(op, {&q, &cache.keys});
    for_each_tensor(options, false, [&](const Tensor& t) { check_devices(op, {&q, &t}); });
    plan_masks(plan, options.mask, shapes);
    plan_scores(plan, options, shapes);
  });
}

Shape output_shape(const AttentionSizes& s) {
  return s.packed ? Shape{s.rows, s.H, s.Dv} : Shape{s.batch, s.H, s.rows, s.Dv};
}

Shape lse_shape(const AttentionSizes& s) { return s.packed ? Shape{s.H, s.rows} : Shape{s.batch, s.H, s.rows}; }

View heads_view(const AttentionSizes& size, const Tensor& t) {
  View view = t.view();
  if (!size.packed || !t) return view;
  view.rank = 4;
  view.size = {1, t.size(1), t.size(0), t.size(2), 1, 1};
  view.stride = {0, t.stride(1), t.stride(0), t.stride(2), 0, 0};
  return view;
}

View lse_view(const AttentionSizes& size, const Tensor& t) {
  View view = t.view();
  if (!size.packed || !t) return view;
  view.rank = 3;
  view.size = {1, t.size(0), t.size(1), 1, 1, 1};
  view.stride = {0, t.stride(0), t.stride(1), 0, 0, 0};
  return view;
}

void check_output(std::string_view op, std::string_view what, const Tensor& out, const Shape& shape, DType dtype) {
  check(static_cast<bool>(out), "{}: {} has no memory; expected {} {}", op, what, name(dtype), shape);
  check(out.dtype() == dtype && out.shape() == shape, "{}: {} is {} {}; expected {} {}", op, what, name(out.dtype()),
        out.shape(), name(dtype), shape);
  check(out.is_contiguous() || !overlaps_itself(out),
        "{}: {} holds some element twice; expected strides that keep elements apart; {} is {}", op, what, what, shape);
}

void check_rows(std::string_view op, std::string_view what, const Tensor& out, const Shape& shape, DType dtype) {
  check_output(op, what, out, shape, dtype);
  check(out.size(-1) <= 1 || out.stride(-1) == 1, "{}: {} has a last stride of {}; expected 1; {} is {}", op, what,
        out.stride(-1), what, shape);
}

void check_apart(std::string_view op, std::string_view what, const Tensor& out, const AttentionInputs& inputs) {
  if (!out) return;
  const Extent own(out.view());
  const auto against = [&](std::string_view label, const Tensor& t) {
    check(!t || own.apart(t.view()) || !overlaps(out, t),
          "{}: {} shares memory with {}; expected memory of its own; {}", op, what, label,
          CallShapes{&inputs.q, &inputs.k, &inputs.v});
  };
  against("q", inputs.q);
  against("k", inputs.k);
  against("v", inputs.v);
  for_each_tensor(inputs.options, true, [&](const Tensor& t) { against("a tensor of the options", t); });
}

void check_results(std::string_view op, const AttentionResult& out, const AttentionPlan& plan,
                   const AttentionInputs& inputs) {
  check_devices(op, {&inputs.q, &out.o, &out.lse});
  check_rows(op, "o", out.o, output_shape(plan.size), plan.q.dtype);
  check_apart(op, "o", out.o, inputs);
  if (!out.lse) return;
  check_output(op, "lse", out.lse, lse_shape(plan.size), DType::f32);
  check_apart(op, "lse", out.lse, inputs);
  check(!overlaps(out.lse, out.o), "{}: lse shares memory with o; expected memory of its own; o is {}, lse is {}", op,
        out.o.shape(), out.lse.shape());
}

View pair_view(std::string_view op, std::string_view what, const Tensor& t, const AttentionSizes& size) {
  const std::array<int64_t, 4> wanted{size.sequences, size.H, size.Tq, size.Tk};
  const auto target = [&] { return Shape{wanted[0], wanted[1], wanted[2], wanted[3]}; };
  check(static_cast<bool>(t), "{}: {} has no memory; expected one that broadcasts to {}", op, what, target());
  check(t.rank() <= 4, "{}: {} is {}; expected rank 4 or less, to broadcast to {}", op, what, t.shape(), target());
  View view = t.view();
  view.rank = 4;
  const int missing = 4 - t.rank();
  for (int axis = 0; axis < 4; ++axis) {
    const int64_t have = axis < missing ? 1 : t.size(axis - missing);
    check(have == wanted[axis] || have == 1, "{}: {} is {}; expected one that broadcasts to {}", op, what, t.shape(),
          target());
    view.size[axis] = wanted[axis];
    view.stride[axis] = have == 1 ? 0 : t.stride(axis - missing);
  }
  check(view.stride[3] == 1 || view.stride[3] == 0,
        "{}: {} has a last stride of {}; expected 1, or 0 for a broadcast; {} is {}", op, what, view.stride[3], what,
        t.shape());
  return view;
}

}  // namespace mh::detail
