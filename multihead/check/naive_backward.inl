// The derivatives of the three steps of naive.inl.
#pragma once

#include "multihead/check/naive.inl"

namespace mh::reference {

template <class Real>
struct Derivatives {
  std::vector<Real> dq, dk, dv, dsink, dtau, dmix;
  std::vector<std::vector<Real>> dbias;
};

template <class Real>
class Naive : public NaiveForward<Real> {
 public:
  using Forward = NaiveForward<Real>;
  using Forward::for_each_row;
  using Forward::Forward;
  using Forward::kNone;
  using Forward::problem;

  // d_lse may be empty.
  Derivatives<Real> backward(const Tensor& d_o, const Tensor& d_lse) {
    Derivatives<Real> out = zero_derivatives();
    const std::vector<Real> grad_o = values<Real>(d_o);
    const std::vector<Real> grad_lse = d_lse ? values<Real>(d_lse) : std::vector<Real>(problem.lse_shape().count(), 0);
    std::vector<Real> ds, unmixed;
    for_each_row([&](Row<Real>& row) {
      ds.assign(problem.H * row.k_len, 0);
      for (int64_t h = 0; h < problem.H; ++h) {
        if (row.empty[h] && sink_.empty()) continue;
        const Real* d_o = &grad_o[problem.q_row(row.b, h, row.i) * problem.Dv];
        const Real change = delta(row, h, d_o) - grad_lse[problem.lse_index(row.b, h, row.i)];
        rebuild_weights(row, h);
        through_softmax(row, h, d_o, change, ds, out);
      }
      add_bias_gradients(row, ds, out);
      through_mix(row, ds, unmixed, out);
      for (int64_t h = 0; h < problem.H; ++h) through_similarity(row, h, unmixed, out);
    });
    if (!q_lengths_.empty()) {
      through_unit(q_, q_lengths_, out.dq);
      through_unit(k_, k_lengths_, out.dk);
    }
    return out;
  }

 private:
  using Forward::add_values;
  using Forward::dropped_out;
  using Forward::head_mix_;
  using Forward::k_;
  using Forward::k_lengths_;
  using Forward::key_mix_;
  using Forward::key_mix_width_;
  using Forward::product;
  using Forward::q_;
  using Forward::q_lengths_;
  using Forward::rounded;
  using Forward::sink_;
  using Forward::v_;
  using Forward::v_turned_;

  // From gradients of unit rows to those of the rows they came from.
  void through_unit(const std::vector<Real>& units, const std::vector<Real>& lengths, std::vector<Real>& grad) const {
    for (size_t r = 0; r < lengths.size(); ++r) {
      const Real* x = &units[r * problem.Dk];
      Real* dx = &grad[r * problem.Dk];
      Real along = 0;
      for (int64_t d = 0; d < problem.Dk; ++d) along += dx[d] == 0 ? 0 : x[d] * dx[d];
      for (int64_t d = 0; d < problem.Dk; ++d) {
        const Real across = dx[d] - (along == 0 ? 0 : along * x[d]);
        dx[d] = lengths[r] == 0 || across == 0 ? 0 : across / lengths[r];
      }
    }
  }

  // Δ = Σ d_o · o of a row, o in the rounding of an output. In descending order: with one key Δ is dp, and where both
  // are summed alike their errors cancel, which no algorithm that sums them apart can match.
  Real delta(const Row<Real>& row, int64_t h, const Real* d_o) const {
    if (row.empty[h]) return 0;
    std::vector<Real> o(problem.Dv, 0);
    add_values(row, h, o.data());
    Real sum = 0;
    for (int64_t d = problem.Dv - 1; d >= 0; --d) sum += d_o[d] * o[d];
    return sum;
  }

  // P as backward knows it: what a call saves is o and lse, so p = exp(s - lse).
  void rebuild_weights(Row<Real>& row, int64_t h) const {
    for (int64_t at = h * row.k_len; at < (h + 1) * row.k_len; ++at) {
      if (row.kept[at]) row.p[at] = rounded(std::exp(row.scores[at] - row.lse[h]));
    }
    if (!sink_.empty() && row.lse[h] != kNone) row.sink_share[h] = std::exp(sink_[h] - row.lse[h]);
  }

  // change: Δ - dlse.
  void through_softmax(const Row<Real>& row, int64_t h, const Real* d_o, Real change, std::vector<Real>& ds,
                       Derivatives<Real>& out) const {
    const int64_t n = row.k_len, hk = problem.key_head(h);
    if (!sink_.empty()) out.dsink[h] -= row.sink_share[h] * change;
    if (row.empty[h]) return;
    std::vector<Real> dp(n);
    product(d_o, v_turned_.data() + hk * problem.Dv * n, problem.Dv, n, dp.data());
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = h * n + j;
      if (!row.kept[at]) continue;
      const Real through = row.factor[at] == 0 ? 0 : rounded(dp[j] * row.factor[at]);
      ds[at] = rounded(row.p[at] * (through - change));
      Real* dv = &out.dv[problem.k_row(row.b, hk, j) * problem.Dv];
      const Real weight = dropped_out(row, at);
      for (int64_t d = 0; d < problem.Dv; ++d) dv[d] += weight * d_o[d];
    }
  }

  void add_bias_gradients(const Row<Real>& row, const std::vector<Real>& ds, Derivatives<Real>& out) const {
    const auto& pieces = problem.biases();
    for (size_t piece = 0; piece < pieces.size(); ++piece) {
      for (int64_t h = 0; h < problem.H; ++h) {
        for (int64_t j = 0; j < row.k_len; ++j) {
          const int64_t at = h * row.k_len + j;
          if (!row.kept[at]) continue;
          const int64_t index = problem.bias_index(pieces[piece], row.b, h, row.i, j);
          out.dbias[piece][index] += ds[at] * static_cast<Real>(problem.bias_slope(pieces[piece], row.b, row.i, j));
        }
      }
    }
  }

  // From gradients of the mixed scores (0 where dropped) to those of the capped ones.
  void through_mix(const Row<Real>& row, const std::vector<Real>& ds, std::vector<Real>& unmixed,
                   Derivatives<Real>& out) const {
    const int64_t H = problem.H, n = row.k_len;
    if (head_mix_.empty() && key_mix_.empty()) {
      unmixed = ds;
      return;
    }
    unmixed.assign(H * n, 0);
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t j = 0; j < n; ++j) {
        const Real grad = ds[h * n + j];
        if (!row.kept[h * n + j]) continue;
        for (int64_t g = 0; g < H && !head_mix_.empty(); ++g) {
          unmixed[g * n + j] += head_mix_[h * H + g] * grad;
          out.dmix[h * H + g] += row.capped[g * n + j] * grad;
        }
        for (int64_t l = 0; l < n && !key_mix_.empty(); ++l) {
          unmixed[h * n + l] += key_mix_[l * key_mix_width_ + j] * grad;
          out.dmix[l * key_mix_width_ + j] += row.capped[h * n + l] * grad;
        }
      }
    }
  }

  void through_similarity(const Row<Real>& row, int64_t h, const std::vector<Real>& ds, Derivatives<Real>& out) const {
    const bool mixes = !head_mix_.empty() || !key_mix_.empty();
    const bool euclidean = std::holds_alternative<EuclideanSimilarity>(problem.options().similarity);
    const int64_t n = row.k_len, hk = problem.key_head(h), Dk = problem.Dk;
    const Real scale = static_cast<Real>(problem.scale(h)), cap = static_cast<Real>(problem.options().cap);
    const Real* q = &q_[problem.q_row(row.b, h, row.i) * Dk];
    Real* dq = &out.dq[problem.q_row(row.b, h, row.i) * Dk];
    Real sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = h * n + j;
      if (!mixes && !row.kept[at]) continue;
      // The derivative of tanh is 1 / cosh²: as 1 - tanh² it would lose its digits where the cap saturates.
      const Real steep = cap > 0 ? std::cosh(scale * row.similarity[at] / cap) : 1;
      const Real grad = ds[at] / (steep * steep);
      if (!out.dtau.empty()) out.dtau[h] += grad * row.similarity[at];
      const Real factor = grad * scale * (euclidean ? 2 : 1);
      const Real* k = &k_[problem.k_row(row.b, hk, j) * Dk];
      Real* dk = &out.dk[problem.k_row(row.b, hk, j) * Dk];
      for (int64_t d = 0; d < Dk; ++d) dq[d] += factor * k[d];
      for (int64_t d = 0; d < Dk; ++d) dk[d] += euclidean ? factor * (q[d] - k[d]) : factor * q[d];
      sum += factor;
    }
    if (euclidean && sum != 0) {
      for (int64_t d = 0; d < Dk; ++d) dq[d] -= sum * q[d];
    }
  }

  Derivatives<Real> zero_derivatives() const {
    Derivatives<Real> out;
    out.dq.assign(q_.size(), 0);
    out.dk.assign(k_.size(), 0);
    out.dv.assign(v_.size(), 0);
    for (const BiasPiece& piece : problem.biases()) out.dbias.emplace_back(piece.numbers.numbers.size(), Real{0});
    if (!sink_.empty()) out.dsink.assign(problem.H, 0);
    if (!q_lengths_.empty()) out.dtau.assign(problem.H, 0);
    out.dmix.assign(std::max(head_mix_.size(), key_mix_.size()), 0);
    return out;
  }
};

}  // namespace mh::reference
