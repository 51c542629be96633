// The table of ops with a call each. Inputs keep away from kinks and poles by more than the steps of the differences.
#include "tests/ops/walked_ops.h"

#include <cmath>

#include "multihead/multihead.h"
#include "multihead/ops/update.h"

namespace mh {
namespace {

using Inputs = std::vector<Tensor>;
using Outputs = std::vector<Tensor>;

// N(0, 1), every element at least 0.1 from 0.
Tensor away_from_zero(const Shape& shape, uint64_t seed) {
  const Tensor x = randn(shape, seed);
  for (int64_t i = 0; i < x.count(); ++i) {
    float& each = x.data<float>()[i];
    if (std::abs(each) < 0.1F) each = each < 0 ? each - 0.1F : each + 0.1F;
  }
  return x;
}

// Above 1/2.
Tensor above_half(const Shape& shape, uint64_t seed) {
  const Tensor x = randn(shape, seed);
  for (int64_t i = 0; i < x.count(); ++i) x.data<float>()[i] = 0.5F + std::abs(x.data<float>()[i]);
  return x;
}

Tensor listed_integers(const std::vector<int32_t>& values) {
  return tensor<int32_t>(values, {static_cast<int64_t>(values.size())});
}

void add_elementwise(std::vector<WalkedOp>& ops) {
  const Tensor x = away_from_zero({3, 4}, 1), y = above_half({3, 4}, 2), row = away_from_zero({4}, 3);
  using Two = Tensor (*)(const Tensor&, const Tensor&);
  using One = Tensor (*)(const Tensor&);
  for (const auto& [name, f] : std::vector<std::pair<std::string, Two>>{
           {"add", add}, {"sub", sub}, {"mul", mul}, {"div", div}, {"maximum", maximum}})
    ops.push_back(
        {name + "(Tensor, Tensor)", true, {x, y}, [f = f](const Inputs& in) { return Outputs{f(in[0], in[1])}; }});
  ops.push_back({"mul(Tensor, Tensor)", true, {x, row}, [](const Inputs& in) { return Outputs{mul(in[0], in[1])}; }});
  for (const auto& [name, f] :
       std::vector<std::pair<std::string, One>>{{"exp", exp}, {"log", log}, {"sqrt", sqrt}, {"square", square}})
    ops.push_back({name + "(Tensor)", true, {y}, [f = f](const Inputs& in) { return Outputs{f(in[0])}; }});
  ops.push_back({"scale(Tensor, float)", true, {x}, [](const Inputs& in) { return Outputs{scale(in[0], 3)}; }});
  // To bf16 and back would be a staircase, of which differences see the steps.
  ops.push_back({"cast(Tensor, DType)", true, {x}, [](const Inputs& in) { return Outputs{cast(in[0], DType::f32)}; }});
  const auto reduced = [&](const std::string& name, Tensor (*f)(const Tensor&, const ReduceOptions&)) {
    ops.push_back({name + "(Tensor, ReduceOptions)", true, {x}, [f](const Inputs& in) {
                     return Outputs{f(in[0], {.axes = {1}})};
                   }});
  };
  reduced("sum", sum);
  reduced("mean", mean);
  reduced("max", max);
}

void add_shapes(std::vector<WalkedOp>& ops) {
  const Tensor x = away_from_zero({3, 4}, 1), y = away_from_zero({3, 2}, 2);
  ops.push_back({"reshape(Tensor, Shape)", true, {x}, [](const Inputs& in) {
                   return Outputs{reshape(in[0], {2, 6})};
                 }});
  ops.push_back(
      {"transpose(Tensor, int, int)", true, {x}, [](const Inputs& in) { return Outputs{transpose(in[0], 0, 1)}; }});
  ops.push_back({"slice(Tensor, int, int64_t, int64_t)", true, {x}, [](const Inputs& in) {
                   return Outputs{slice(in[0], 0, 0, 2)};
                 }});
  ops.push_back({"broadcast_to(Tensor, Shape)", true, {x}, [](const Inputs& in) {
                   return Outputs{broadcast_to(in[0], {2, 3, 4})};
                 }});
  ops.push_back({"split(Tensor, int, vector<int64_t>)", true, {x}, [](const Inputs& in) {
                   return split(in[0], 1, {1, 3});
                 }});
  ops.push_back({"concat(vector<Tensor>, int)", true, {x, y}, [](const Inputs& in) { return Outputs{concat(in, 1)}; }});
  ops.push_back({"gather(Tensor, Tensor)", true, {x}, [](const Inputs& in) {
                   return Outputs{gather(in[0], listed_integers({2, 0, 2}))};
                 }});
}

void add_rows(std::vector<WalkedOp>& ops) {
  const Tensor x = away_from_zero({3, 4}, 1), gamma = away_from_zero({4}, 2), beta = away_from_zero({4}, 3),
               table = away_from_zero({5, 4}, 4);
  ops.push_back({"activation(Tensor, Activation)", true, {x}, [](const Inputs& in) {
                   return Outputs{activation(in[0], Activation::gelu)};
                 }});
  ops.push_back({"gated(Tensor, Activation)", true, {x}, [](const Inputs& in) {
                   return Outputs{gated(in[0], Activation::sigmoid)};
                 }});
  ops.push_back({"swiglu(Tensor)", true, {x}, [](const Inputs& in) { return Outputs{swiglu(in[0])}; }});
  ops.push_back({"geglu(Tensor)", true, {x}, [](const Inputs& in) { return Outputs{geglu(in[0])}; }});
  ops.push_back({"layer_norm(Tensor, Tensor, Tensor, NormOptions)", true, {x, gamma, beta}, [](const Inputs& in) {
                   return Outputs{layer_norm(in[0], in[1], in[2])};
                 }});
  ops.push_back({"rms_norm(Tensor, Tensor, NormOptions)", true, {x, gamma}, [](const Inputs& in) {
                   return Outputs{rms_norm(in[0], in[1])};
                 }});
  ops.push_back({"softmax(Tensor)", true, {x}, [](const Inputs& in) { return Outputs{softmax(in[0])}; }});
  ops.push_back({"log_softmax(Tensor)", true, {x}, [](const Inputs& in) { return Outputs{log_softmax(in[0])}; }});
  ops.push_back({"log_sum_exp(Tensor)", true, {x}, [](const Inputs& in) { return Outputs{log_sum_exp(in[0])}; }});
  ops.push_back(
      {"top_k(Tensor, int64_t)", false, {x}, [](const Inputs& in) { return Outputs{top_k(in[0], 2).values}; }});
  ops.push_back({"dropout(Tensor, DropoutOptions)", true, {x}, [](const Inputs& in) {
                   return Outputs{dropout(in[0], {0.5F, 1})};
                 }});
  ops.push_back(
      {"dropout_add(Tensor, Tensor, DropoutOptions)", true, {x, away_from_zero({3, 4}, 5)}, [](const Inputs& in) {
         return Outputs{dropout_add(in[0], in[1], {0.5F, 1})};
       }});
  ops.push_back(
      {"embedding(Tensor, Tensor, EmbeddingOptions)", true, {table, away_from_zero({3, 4}, 6)}, [](const Inputs& in) {
         return Outputs{embedding(in[0], listed_integers({1, 4, 1}), {.scale = 2, .positions = in[1]})};
       }});
  ops.push_back({"rope(Tensor, Tensor, RopeOptions)", true, {away_from_zero({3, 2, 4}, 7)}, [](const Inputs& in) {
                   return Outputs{rope(in[0], listed_integers({0, 1, 5}))};
                 }});
  ops.push_back({"cross_entropy(Tensor, Tensor, CrossEntropyOptions)", true, {x}, [](const Inputs& in) {
                   return Outputs{cross_entropy(in[0], listed_integers({1, 3, 0}), {.smoothing = 0.1F}).loss};
                 }});
  ops.push_back(
      {"linear_cross_entropy(Tensor, Tensor, Tensor, CrossEntropyOptions)", true, {x, table}, [](const Inputs& in) {
         return Outputs{linear_cross_entropy(in[0], in[1], listed_integers({1, 3, 0})).loss};
       }});
}

void add_products(std::vector<WalkedOp>& ops) {
  const Tensor x = away_from_zero({3, 4}, 1), w = away_from_zero({4, 5}, 2), wt = away_from_zero({5, 4}, 3),
               bias = away_from_zero({5}, 4), added = away_from_zero({3, 5}, 5), gate = away_from_zero({3, 5}, 6),
               w2 = away_from_zero({2, 5}, 7), b2 = away_from_zero({2}, 8), end = away_from_zero({3, 2}, 9);
  const std::string plain = "matmul(Tensor, Tensor, MatmulOptions)";
  ops.push_back({plain, true, {x, w, bias, added}, [](const Inputs& in) {
                   return Outputs{matmul(in[0], in[1], {.bias = in[2], .residual = in[3], .scale = 0.5F})};
                 }});
  ops.push_back({plain, true, {x, w, bias, added}, [gate](const Inputs& in) {
                   return Outputs{matmul(
                       in[0], in[1], {.bias = in[2], .residual = in[3], .gate = gate, .activation = Activation::gelu})};
                 }});
  ops.push_back({"matmul(Tensor, PackedWeights, MatmulOptions)", false, {x, bias, added}, [w](const Inputs& in) {
                   return Outputs{matmul(in[0], prepack(w), {.bias = in[1], .residual = in[2]})};
                 }});
  ops.push_back({"prepack(Tensor)", false, {w}, [](const Inputs& in) { return prepack(in[0]), Outputs{}; }});
  ops.push_back(
      {"matmul_into(Tensor, Tensor, Tensor, MatmulOptions)", false, {x, w, bias, added}, [](const Inputs& in) {
         matmul_into(empty({3, 5}), in[0], in[1], {.bias = in[2], .residual = in[3]});
         return Outputs{};
       }});
  ops.push_back(
      {"prepack_top_k(Tensor)", false, {wt}, [](const Inputs& in) { return prepack_top_k(in[0]), Outputs{}; }});
  const std::string top = "linear_top_k(Tensor, TopKWeights, int64_t)";
  ops.push_back(
      {top, false, {x}, [wt](const Inputs& in) { return Outputs{linear_top_k(in[0], prepack_top_k(wt), 2).values}; }});
  const Tensor infinite = wt.clone();  // no integers stand for it: linear_top_k takes another way
  infinite.data<float>()[0] = INFINITY;
  ops.push_back({top, false, {x}, [infinite](const Inputs& in) {
                   return Outputs{linear_top_k(in[0], prepack_top_k(infinite), 2).values};
                 }});
  ops.push_back(
      {"prepack_sparse(Tensor)", false, {wt}, [](const Inputs& in) { return prepack_sparse(in[0]), Outputs{}; }});
  ops.push_back(
      {"sparse_linear(Tensor, SparseWeights, Tensor, Tensor)", false, {x, bias, added}, [wt](const Inputs& in) {
         return Outputs{sparse_linear(in[0], prepack_sparse(wt), in[1], in[2])};
       }});
  const std::string layer = "linear(Tensor, Tensor, LinearOptions)";
  ops.push_back({layer, true, {x, wt, bias, added}, [](const Inputs& in) {
                   return Outputs{linear(in[0], in[1], {.bias = in[2], .residual = in[3]})};
                 }});
  ops.push_back(
      {layer, true, {x, wt, bias}, [](const Inputs& in) {
         return Outputs{
             linear(in[0], in[1], {.bias = in[2], .activation = Activation::silu, .dropout = {.p = 0.3F, .seed = 3}})};
       }});
  ops.push_back({"linear_relu_linear(Tensor, LinearWeights, LinearWeights, ReluPairOptions)",
                 true,
                 {x, wt, bias, w2, b2, end},
                 [](const Inputs& in) {
                   return Outputs{linear_relu_linear(in[0], {in[1], in[2]}, {in[3], in[4]},
                                                     {.dropout = {.p = 0.3F, .seed = 3}, .residual = in[5]})};
                 }});
}

void add_recurrent(std::vector<WalkedOp>& ops) {
  const std::string call = "recurrent(Tensor, Tensor, RecurrentWeights, RecurrentOptions)";
  const Tensor h = randn({3, 2}, 4), c = randn({3, 2}, 5), starts = listed_integers({0, 2, 2, 5});
  const auto walk = [&](Cell cell, int64_t all, const Inputs& start) {
    Inputs inputs{above_half({5, all}, 1), randn({all, 2}, 2), above_half({all}, 3)};
    inputs.insert(inputs.end(), start.begin(), start.end());
    ops.push_back({call, true, inputs, [cell, starts](const Inputs& in) {
                     const RecurrentState state{in[3], in.size() > 4 ? in[4] : Tensor()};
                     const RecurrentResult out =
                         recurrent(in[0], starts, {.w = in[1], .bias = in[2]}, {.cell = cell, .start = state});
                     return out.end.c ? Outputs{out.y, out.end.h, out.end.c} : Outputs{out.y, out.end.h};
                   }});
  };
  walk(Cell::tanh, 2, {h});
  walk(Cell::lstm, 8, {h, c});
  walk(Cell::gru, 6, {h});
  ops.push_back({"additive_scores(Tensor, Tensor, Tensor, Tensor)",
                 true,
                 {randn({3, 4}, 1), randn({5, 4}, 2), randn({4}, 3)},
                 [starts](const Inputs& in) { return Outputs{additive_scores(in[0], in[1], in[2], starts)}; }});
}

void add_updates(std::vector<WalkedOp>& ops) {
  const Tensor x = away_from_zero({3}, 1), y = away_from_zero({3}, 2), v = above_half({3}, 3),
               g = away_from_zero({3}, 4);
  ops.push_back({"adamw(AdamwState, Tensor, AdamwOptions)", false, {x, y, v, g}, [](const Inputs& in) {
                   adamw({in[0], in[1], in[2]}, in[3], {});
                   return Outputs{};
                 }});
  ops.push_back(
      {"sum_of_squares(Tensor)", false, {x}, [](const Inputs& in) { return sum_of_squares(in[0]), Outputs{}; }});
  ops.push_back({"lerp(Tensor, Tensor, float)", false, {x, y}, [](const Inputs& in) {
                   return lerp(in[0], in[1], 0.5F), Outputs{};
                 }});
  ops.push_back({"accumulate(Tensor, Tensor)", false, {x, y}, [](const Inputs& in) {
                   return accumulate(in[0], in[1]), Outputs{};
                 }});
}

// q, k and v of a small call, o and lse of it, and gradients of those.
struct SmallCall {
  Tensor q = randn({1, 2, 5, 8}, 1), k = randn({1, 2, 6, 8}, 2), v = randn({1, 2, 6, 4}, 3);
  AttentionResult result = attention(q, k, v);
  Tensor d_o = randn({1, 2, 5, 4}, 4), d_lse = randn({1, 2, 5}, 5);
};

void add_attention(std::vector<WalkedOp>& ops) {
  const SmallCall s;
  const std::string call = "attention(Tensor, Tensor, Tensor, AttentionOptions)";
  const auto walk = [&](const Tensor& learned, const std::function<AttentionOptions(const Tensor&)>& options) {
    ops.push_back({call, true, {s.q, s.k, s.v, learned}, [options](const Inputs& in) {
                     const AttentionResult out = attention(in[0], in[1], in[2], options(in[3]));
                     return Outputs{out.o, out.lse};
                   }});
  };
  walk(randn({2, 5, 6}, 6), [](const Tensor& x) { return AttentionOptions{.mask = causal(), .bias = {DenseBias{x}}}; });
  walk(above_half({2}, 7), [](const Tensor& x) { return AttentionOptions{.bias = {AlibiBias{x}}}; });
  walk(randn({4, 2}, 8), [](const Tensor& x) { return AttentionOptions{.bias = {T5Bias{x, true, 8}}}; });
  walk(randn({2}, 9), [](const Tensor& x) { return AttentionOptions{.sink = x}; });
  walk(above_half({2}, 10),
       [](const Tensor& x) { return AttentionOptions{.similarity = CosineSimilarity{.taus = x}}; });
  walk(randn({2, 2}, 11), [](const Tensor& x) { return AttentionOptions{.score_mix = HeadMix{x}}; });
  walk(randn({6, 6}, 12), [](const Tensor& x) { return AttentionOptions{.score_mix = KeyMix{x}}; });
  ops.push_back(
      {"merge(vector<AttentionResult>)", true, {s.d_o, s.d_lse, s.result.o, s.result.lse}, [](const Inputs& in) {
         const AttentionResult out = merge({{in[0], in[1]}, {in[2], in[3]}});
         return Outputs{out.o, out.lse};
       }});
  ops.push_back({"attention(Tensor, KVCache, AttentionOptions)", false, {s.q, randn({2}, 9)}, [s](const Inputs& in) {
                   KVCache cache({.key_heads = 2, .key_width = 8, .value_width = 4, .capacity = 8});
                   cache.append(s.k, s.v);
                   const AttentionResult out = attention(in[0], cache, {.sink = in[1]});
                   return Outputs{out.o, out.lse};
                 }});
}

// What looks at a call, goes back through it, or writes where the caller says.
void add_attention_without_gradients(std::vector<WalkedOp>& ops) {
  const SmallCall s;
  const Tensor sink = randn({2}, 9);
  ops.push_back({"attention_into(AttentionResult, Tensor, Tensor, Tensor, AttentionOptions)",
                 false,
                 {s.q, s.k, s.v, sink},
                 [](const Inputs& in) {
                   attention_into({empty({1, 2, 5, 4}), {}}, in[0], in[1], in[2], {.sink = in[3]});
                   return Outputs{};
                 }});
  const Inputs backward{s.q, s.k, s.v, s.result.o, s.result.lse, s.d_o, s.d_lse};
  ops.push_back(
      {"attention_backward(AttentionCall, Tensor, Tensor, AttentionOptions)", false, backward, [](const Inputs& in) {
         const AttentionGradients out = attention_backward({in[0], in[1], in[2], {in[3], in[4]}}, in[5], in[6]);
         return Outputs{out.dq, out.dk, out.dv};
       }});
  ops.push_back(
      {"attention_backward_into(AttentionGradients, AttentionCall, OutputGradients, AttentionOptions)", false, backward,
       [](const Inputs& in) {
         attention_backward_into({.dq = empty(in[0].shape())}, {in[0], in[1], in[2], {in[3], in[4]}}, {in[5], in[6]});
         return Outputs{};
       }});
  ops.push_back({"merge_backward(vector<AttentionResult>, AttentionResult, AttentionResult)",
                 false,
                 {s.result.o, s.result.lse, s.d_o, s.d_lse},
                 [](const Inputs& in) {
                   const auto out = merge_backward({{in[0], in[1]}}, {in[0], in[1]}, {in[2], in[3]});
                   return Outputs{out[0].o, out[0].lse};
                 }});
  const Inputs looked_at{s.q, s.k, s.result.lse, sink};
  ops.push_back({"attention_weights(Tensor, Tensor, Tensor, AttentionOptions, vector<int32_t>, vector<int32_t>)", false,
                 looked_at,
                 [](const Inputs& in) { return Outputs{attention_weights(in[0], in[1], in[2], {.sink = in[3]})}; }});
  ops.push_back({"attention_weights_into(Tensor, AttentionCall, AttentionOptions, WeightsChoice)", false, looked_at,
                 [](const Inputs& in) {
                   attention_weights_into(empty({1, 2, 5, 6}), {in[0], in[1], {}, {{}, in[2]}}, {.sink = in[3]}, {});
                   return Outputs{};
                 }});
  ops.push_back(
      {"attention_mean_into(Tensor, AttentionCall, AttentionOptions)",
       false,
       {s.q, s.k, s.v, sink},
       [](const Inputs& in) {
         attention_mean_into(empty({1, 5, 6}), {in[0], in[1], in[2], {empty({1, 2, 5, 4}), {}}}, {.sink = in[3]});
         return Outputs{};
       }});
  ops.push_back(
      {"attention_statistics(Tensor, Tensor, Tensor, AttentionOptions, int)", false, looked_at, [](const Inputs& in) {
         const AttentionStatistics out = attention_statistics(in[0], in[1], in[2], {.sink = in[3]});
         return Outputs{out.entropy, out.top_weights, out.received, out.distance};
       }});
}

}  // namespace

std::vector<WalkedOp> walked_ops() {
  std::vector<WalkedOp> ops;
  for (const auto add_some : {add_elementwise, add_shapes, add_rows, add_products, add_recurrent, add_updates,
                              add_attention, add_attention_without_gradients})
    add_some(ops);
  return ops;
}

}  // namespace mh
