// The reference: the naive algorithm in double, and the plain formulas of weights, statistics and merge.
#include "multihead/check/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "multihead/check/naive_backward.inl"

namespace mh::reference {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

Tensor f64(const std::vector<double>& numbers, const Shape& shape) { return to_tensor(numbers, shape, DType::f64); }

// Values are not read where only the weights are asked for.
Naive<double> weights_only(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  return Naive<double>(q, k, k, options, DType::f64);
}

Tensor source(const Bias& bias) {
  if (const auto* dense = std::get_if<DenseBias>(&bias)) return dense->values;
  if (const auto* alibi = std::get_if<AlibiBias>(&bias)) return alibi->slopes;
  return std::get<T5Bias>(bias).table;
}

Shape mix_shape(const ScoreMix& mix) {
  if (const auto* heads = std::get_if<HeadMix>(&mix)) return heads->matrix.shape();
  return std::get<KeyMix>(mix).matrix.shape();
}

// log Σ exp over parts, per row.
std::vector<double> joined_lse(const std::vector<std::vector<double>>& lses) {
  std::vector<double> out(lses[0].size(), kNone);
  for (size_t row = 0; row < out.size(); ++row) {
    double top = kNone, sum = 0;
    for (const auto& lse : lses) top = std::max(top, lse[row]);
    if (top == kNone) continue;
    for (const auto& lse : lses) sum += std::exp(lse[row] - top);
    out[row] = top + std::log(sum);
  }
  return out;
}

double share(double lse, double joined) { return joined == kNone ? 0 : std::exp(lse - joined); }

}  // namespace

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  Naive<double> naive(q, k, v, options, DType::f64);
  const Outputs<double> out = naive.forward();
  return {f64(out.o, naive.problem.o_shape()), f64(out.lse, naive.problem.lse_shape())};
}

AttentionGradients attention_backward(const AttentionCall& call, const Tensor& d_o, const Tensor& d_lse,
                                      const AttentionOptions& options) {
  Naive<double> naive(call.q, call.k, call.v, options, DType::f64);
  const Derivatives<double> d = naive.backward(d_o, d_lse);
  AttentionGradients out;
  out.dq = f64(d.dq, call.q.shape());
  out.dk = f64(d.dk, call.k.shape());
  out.dv = f64(d.dv, call.v.shape());
  for (size_t n = 0; n < options.bias.size(); ++n)
    out.dbias.push_back(f64(d.dbias[n], source(options.bias[n]).shape()));
  if (!d.dsink.empty()) out.dsink = f64(d.dsink, {naive.problem.H});
  if (!d.dtau.empty()) out.dtau = f64(d.dtau, {naive.problem.H});
  if (!d.dmix.empty()) out.dmix = f64(d.dmix, mix_shape(options.score_mix));
  return out;
}

AttentionResult merge(const std::vector<AttentionResult>& parts) {
  std::vector<std::vector<double>> lses;
  for (const AttentionResult& part : parts) lses.push_back(values<double>(part.lse));
  const std::vector<double> lse = joined_lse(lses);
  const int64_t width = parts[0].o.size(-1);
  std::vector<double> o(lse.size() * width, 0);
  for (size_t n = 0; n < parts.size(); ++n) {
    const std::vector<double> own = values<double>(parts[n].o);
    for (size_t row = 0; row < lse.size(); ++row) {
      const double weight = share(lses[n][row], lse[row]);
      for (int64_t d = 0; d < width && weight != 0; ++d) o[row * width + d] += weight * own[row * width + d];
    }
  }
  return {f64(o, parts[0].o.shape()), f64(lse, parts[0].lse.shape())};
}

std::vector<AttentionResult> merge_backward(const std::vector<AttentionResult>& parts,
                                            const AttentionResult& gradient) {
  const AttentionResult joined = reference::merge(parts);
  const std::vector<double> o = values<double>(joined.o), lse = values<double>(joined.lse);
  const std::vector<double> d_o = values<double>(gradient.o);
  const std::vector<double> d_lse = gradient.lse ? values<double>(gradient.lse) : std::vector<double>(lse.size(), 0);
  const int64_t width = parts[0].o.size(-1);
  std::vector<AttentionResult> out;
  for (const AttentionResult& part : parts) {
    const std::vector<double> own = values<double>(part.o), own_lse = values<double>(part.lse);
    std::vector<double> part_do(o.size(), 0), part_dlse(lse.size(), 0);
    for (size_t row = 0; row < lse.size(); ++row) {
      const double weight = share(own_lse[row], lse[row]);
      if (weight == 0) continue;
      double change = d_lse[row];
      for (int64_t d = 0; d < width; ++d) {
        const size_t at = row * width + d;
        part_do[at] = weight * d_o[at];
        change += d_o[at] * (own[at] - o[at]);
      }
      part_dlse[row] = weight * change;
    }
    out.push_back({f64(part_do, part.o.shape()), f64(part_dlse, part.lse.shape())});
  }
  return out;
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                         const std::vector<int32_t>& heads, const std::vector<int32_t>& rows) {
  Naive<double> naive = weights_only(q, k, options);
  const Problem& problem = naive.problem;
  std::vector<int32_t> all_heads(problem.H), all_rows(problem.Tq);
  std::iota(all_heads.begin(), all_heads.end(), 0);
  std::iota(all_rows.begin(), all_rows.end(), 0);
  const auto& chosen_heads = heads.empty() ? all_heads : heads;
  const auto& chosen_rows = rows.empty() ? all_rows : rows;
  const auto head_count = static_cast<int64_t>(chosen_heads.size()),
             row_count = static_cast<int64_t>(chosen_rows.size());
  std::vector<double> out(problem.B * head_count * row_count * problem.Tk, 0);
  naive.for_each_row([&](const Row<double>& row) {
    for (int64_t r = 0; r < row_count; ++r) {
      if (chosen_rows[r] != row.i) continue;
      for (int64_t h = 0; h < head_count; ++h) {
        double* to = out.data() + ((row.b * head_count + h) * row_count + r) * problem.Tk;
        std::copy_n(row.p.data() + chosen_heads[h] * row.k_len, row.k_len, to);
      }
    }
  });
  return f64(out, {problem.B, head_count, row_count, problem.Tk});
}

AttentionStatistics attention_statistics(const Tensor& q, const Tensor& k, const AttentionOptions& options, int top) {
  Naive<double> naive = weights_only(q, k, options);
  const Problem& problem = naive.problem;
  const int64_t B = problem.B, H = problem.H, Tq = problem.Tq, Tk = problem.Tk;
  std::vector<double> entropy(B * H * Tq, 0), distance(B * H * Tq, 0), received(B * H * Tk, 0);
  std::vector<double> keys(B * H * Tq * top, -1), weights(B * H * Tq * top, 0);
  naive.for_each_row([&](const Row<double>& row) {
    for (int64_t h = 0; h < H; ++h) {
      const double* p = row.p.data() + h * row.k_len;
      const char* kept = row.kept.data() + h * row.k_len;
      const int64_t at = (row.b * H + h) * Tq + row.i;
      std::vector<int64_t> order;
      if (row.sink_share[h] > 0) entropy[at] -= row.sink_share[h] * std::log(row.sink_share[h]);
      for (int64_t j = 0; j < row.k_len; ++j) {
        if (!kept[j]) continue;
        if (p[j] > 0) entropy[at] -= p[j] * std::log(p[j]);
        distance[at] += p[j] * static_cast<double>(std::abs(problem.position(row.b, row.i) - j));
        received[(row.b * H + h) * Tk + j] += p[j];
        order.push_back(j);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return p[a] > p[b]; });
      for (int64_t n = 0; n < std::min<int64_t>(top, static_cast<int64_t>(order.size())); ++n) {
        keys[at * top + n] = static_cast<double>(order[n]);
        weights[at * top + n] = p[order[n]];
      }
    }
  });
  return {.entropy = f64(entropy, {B, H, Tq}),
          .top_keys = to_tensor(keys, {B, H, Tq, top}, DType::i32),
          .top_weights = f64(weights, {B, H, Tq, top}),
          .received = f64(received, {B, H, Tk}),
          .distance = f64(distance, {B, H, Tq})};
}

Tensor empty_rows(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  Naive<double> naive = weights_only(q, k, options);
  Tensor out = zeros(naive.problem.lse_shape(), DType::u8);
  naive.for_each_row([&](const Row<double>& row) {
    for (int64_t h = 0; h < naive.problem.H; ++h) {
      out.data<uint8_t>()[naive.problem.lse_index(row.b, h, row.i)] = row.empty[h];
    }
  });
  return out;
}

}  // namespace mh::reference
