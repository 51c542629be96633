// The composed path alone, over every option, against the double-precision reference: a device without kernels works.
#include "multihead/kernels/composed_attention.h"

#include <gtest/gtest.h>

#include "multihead/check/reference.h"
#include "multihead/ops/attention/plan.h"
#include "multihead/ops/run.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::relative_error;

struct Composed {
  AttentionResult result;
  AttentionGradients gradients;
  Tensor weights;
  AttentionStatistics statistics;
};

template <class Args>
void share(Args& args, const detail::AttentionPlan& plan) {
  args.q = plan.q;
  args.kv = plan.kv;
  args.scores = plan.scores;
  args.sequences = plan.sequence_list();
}

// What the op does, with every kernel missing.
Composed composed(const AttentionCall& call, const AttentionResult& gradient, const AttentionOptions& options) {
  const detail::AttentionPlan plan = detail::plan_attention("composed", {call.q, call.k, call.v, options});
  const detail::AttentionSizes& s = plan.size;
  Composed out;
  out.result = {empty(detail::output_shape(s), call.q.dtype()), empty(detail::lse_shape(s))};
  kernels::AttentionForwardArgs forward;
  share(forward, plan);
  forward.o = detail::heads_view(s, out.result.o);
  forward.lse = detail::lse_view(s, out.result.lse);
  run(&Table::composed_forward, {forward, plan.mixing}, call.q);

  AttentionGradients& g = out.gradients;
  g = {.dq = empty_like(call.q),
       .dk = zeros(call.k.shape(), call.k.dtype()),
       .dv = zeros(call.v.shape(), call.v.dtype())};
  kernels::AttentionBackwardArgs backward;
  share(backward, plan);
  backward.o = forward.o;
  backward.lse = forward.lse;
  backward.d_o = detail::heads_view(s, gradient.o);
  backward.d_lse = detail::lse_view(s, gradient.lse);
  backward.dq = detail::heads_view(s, g.dq);
  backward.dk = detail::heads_view(s, g.dk);
  backward.dv = detail::heads_view(s, g.dv);
  if (plan.scores.sink) g.dsink = empty({s.H}), backward.dsink = g.dsink.data<float>();
  g.dtau = empty({s.H});
  backward.dscale = g.dtau.data<float>();
  if (plan.mixing.kind != kernels::Mixing::none)
    g.dmix = empty({plan.mixing.matrix.size[0], plan.mixing.matrix.size[1]});
  if (plan.dense_bias >= 0) {
    g.dbias.push_back(empty(std::get<DenseBias>(options.bias[plan.dense_bias]).values.shape()));
    backward.dbias = detail::pair_view("composed", "dbias", g.dbias[0], s);
  }
  run(&Table::composed_backward, {backward, plan.mixing, g.dmix.view()}, call.q);

  kernels::AttentionWeightsArgs weights;
  share(weights, plan);
  const std::vector<int32_t> heads{3, 0}, rows{0, 5, 2};
  weights.lse = forward.lse;
  weights.heads = heads.data();
  weights.head_count = 2;
  weights.rows = rows.data();
  weights.row_count = 3;
  out.weights = empty({s.sequences, 2, 3, s.Tk});
  weights.weights = out.weights.view();
  run(&Table::composed_weights, {weights, plan.mixing}, call.q);

  kernels::AttentionStatisticsArgs statistics;
  share(statistics, plan);
  statistics.lse = forward.lse;
  out.statistics.entropy = empty({s.sequences, s.H, s.Tq});
  out.statistics.top_keys = empty({s.sequences, s.H, s.Tq, 2}, DType::i32);
  out.statistics.received = empty({s.sequences, s.H, s.Tk});
  out.statistics.distance = empty({s.sequences, s.H, s.Tq});
  statistics.entropy = out.statistics.entropy.view();
  statistics.top_keys = out.statistics.top_keys.view();
  statistics.received = out.statistics.received.view();
  statistics.distance = out.statistics.distance.view();
  run(&Table::composed_statistics, {statistics, plan.mixing}, call.q);
  return out;
}

void agrees(const std::string& label, const Tensor& q, const Tensor& k, const Tensor& v,
            const AttentionOptions& options) {
  SCOPED_TRACE(label);
  const AttentionResult whole = reference::attention(q, k, v, options);
  const AttentionResult gradient{randn(whole.o.shape(), 7), randn(whole.lse.shape(), 8)};
  const Composed ours = composed({q, k, v, {}}, gradient, options);
  const AttentionGradients theirs = reference::attention_backward({q, k, v, {}}, gradient.o, gradient.lse, options);
  constexpr double near = 3e-6;
  EXPECT_LT(relative_error(ours.result.o, whole.o), near);
  EXPECT_LT(relative_error(ours.result.lse, whole.lse), near);
  EXPECT_LT(relative_error(ours.gradients.dq, theirs.dq), near);
  EXPECT_LT(relative_error(ours.gradients.dk, theirs.dk), near);
  EXPECT_LT(relative_error(ours.gradients.dv, theirs.dv), near);
  if (theirs.dsink) {
    EXPECT_LT(relative_error(ours.gradients.dsink, theirs.dsink), near);
  }
  if (theirs.dtau) {
    EXPECT_LT(relative_error(ours.gradients.dtau, theirs.dtau), near);
  }
  if (theirs.dmix) {
    EXPECT_LT(relative_error(ours.gradients.dmix, theirs.dmix), near);
  }
  for (size_t n = 0; n < ours.gradients.dbias.size(); ++n)
    EXPECT_LT(relative_error(ours.gradients.dbias[n], theirs.dbias[n]), near);
  EXPECT_LT(relative_error(ours.weights, reference::attention_weights(q, k, options, {3, 0}, {0, 5, 2})), near);
  const AttentionStatistics statistics = reference::attention_statistics(q, k, options, 2);
  EXPECT_LT(relative_error(ours.statistics.entropy, statistics.entropy), near);
  EXPECT_LT(relative_error(ours.statistics.received, statistics.received), near);
  EXPECT_LT(relative_error(ours.statistics.distance, statistics.distance), near);
  EXPECT_EQ(test::numbers(ours.statistics.top_keys), test::numbers(statistics.top_keys));
}

struct ComposedPath : testing::Test {
  const Tensor q = randn({2, 4, 7, 12}, 1), k = randn({2, 2, 11, 12}, 2), v = randn({2, 2, 11, 5}, 3);
  const Tensor per_head = randn({4}, 9), bias = randn({2, 1, 7, 11}, 10);
  const Tensor lengths_of = tensor<int32_t>({11, 5}, {2});
};

TEST_F(ComposedPath, MasksAgree) {
  agrees("plain", q, k, v, {});
  agrees("causal", q, k, v, {.mask = causal()});
  agrees("lengths", q, k, v, {.mask = from_torch_causal() & lengths(lengths_of)});
  agrees("window", q, k, v, {.mask = window(2, 1)});
  agrees("prefix", q, k, v, {.mask = prefix(3) & window(4, -1)});
  agrees("documents", q, k, v,
         {.mask = documents(tensor<int32_t>({1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4}, {1, 11})) & causal(2)});
  agrees("empty rows", q, k, v, {.mask = causal(-4)});
}

TEST_F(ComposedPath, ScoresAgree) {
  agrees("cosine", q, k, v, {.similarity = CosineSimilarity{.taus = per_head}});
  agrees("euclidean", q, k, v, {.similarity = EuclideanSimilarity{0.3f}});
  agrees("cap, sink, bias", q, k, v, {.bias = {DenseBias{bias}}, .cap = 1.5f, .sink = per_head});
  agrees("sink and empty rows", q, k, v, {.mask = causal(-4), .sink = per_head});
  agrees("bias over heads and keys", q, k, v, {.bias = {DenseBias{randn({7, 1}, 4)}}});
  agrees("dropout", q, k, v, {.dropout = {0.3f, 5}});
  agrees("dropout of all", q, k, v, {.dropout = {1.0f, 5}});
}

TEST_F(ComposedPath, PackedBatchesAgree) {
  const Packed packed{tensor<int32_t>({0, 3, 3, 9}, {4}), tensor<int32_t>({0, 2, 7, 13}, {4})};
  const Tensor pq = randn({9, 4, 6}, 1), pk = randn({13, 2, 6}, 2), pv = randn({13, 2, 3}, 3);
  agrees("packed", pq, pk, pv, {.mask = causal(), .packed = packed});
  agrees("packed dropout", pq, pk, pv, {.dropout = {0.5f, 3}, .packed = packed});
}

TEST_F(ComposedPath, RowsAreTakenInChunks) {
  static_assert(kernels::composed_rows(4, 7, 11) == 7);
  static_assert(kernels::composed_rows(16, 4096, 4096) == 16);
  static_assert(kernels::composed_rows(64, 10, int64_t{1} << 20) == 1);
  const Tensor far_q = randn({1, 2, 50, 4}, 1), far_k = randn({1, 1, 20000, 4}, 2), far_v = randn({1, 1, 20000, 4}, 3);
  const AttentionOptions options{.score_mix = HeadMix{randn({2, 2}, 4)}};
  EXPECT_LT(kernels::composed_rows(2, 50, 20000), 50);
  EXPECT_LT(
      relative_error(attention(far_q, far_k, far_v, options).o, reference::attention(far_q, far_k, far_v, options).o),
      5e-6);
}

}  // namespace
}  // namespace mh
