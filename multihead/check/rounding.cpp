// Walking the rows of the reference and adding up the squares of what each rounding may do.
#include "multihead/check/rounding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "multihead/check/naive.inl"

namespace mh {
namespace {

using reference::BiasPiece;
using reference::NaiveForward;
using reference::Problem;
using reference::Row;
using reference::values;

// Unit roundoff of f32: its results carry several roundings each.
constexpr double kSingle = 0x1p-24;

// One rounding to bf16 or f16 errs by half the unit roundoff in the mean square, to within 20 %.
double roundoff(DType dtype) { return dtype == DType::bf16 ? 0x1p-8 / 2 : dtype == DType::f16 ? 0x1p-11 / 2 : kSingle; }

// The same where f16 has left only its smallest step: no number errs by less.
double least_roundoff(DType dtype) { return dtype == DType::f16 ? 0x1p-24 / std::sqrt(12.0) : 0; }

// Mean square of the elements of each row.
std::vector<double> mean_squares(const std::vector<double>& rows, int64_t width) {
  std::vector<double> out(rows.size() / width, 0);
  for (size_t n = 0; n < rows.size(); ++n) out[n / width] += rows[n] * rows[n] / static_cast<double>(width);
  return out;
}

double largest_root(const std::vector<double>& squares) {
  double most = 0;
  for (double each : squares) most = std::isfinite(each) ? std::max(most, each) : most;
  return std::sqrt(most);
}

double squared(double x) { return x * x; }

// A sum of n products in sequence in f32, as a share of the root of the sum of their squares: each product rounds, and
// each partial sum, which has grown to the root of its number of terms, rounds by 0.41 units in the mean square.
double sum_error(int64_t n) { return kSingle * (1 + 0.41 * std::sqrt(static_cast<double>(n) / 2)); }

// The square of what the partial sums of n terms round by, as a share of the sum of the terms' squares: those of a
// random walk have n / 2 times one term's square in the mean, and round by 0.41 units.
double walk_square(int64_t n) { return squared(0.41 * kSingle) * static_cast<double>(n) / 2; }

class ErrorWalk {
 public:
  explicit ErrorWalk(const CaseInputs& in)
      : naive_(in.q, in.k, in.v, in.options, DType::f64),
        p_(naive_.problem),
        unit_(roundoff(in.q.dtype())),
        least_(least_roundoff(in.q.dtype())),
        v_(values<double>(in.v)),
        d_o_(values<double>(in.d_o)),
        d_lse_(in.d_lse ? values<double>(in.d_lse) : std::vector<double>(p_.lse_shape().count(), 0)),
        q_ms_(mean_squares(values<double>(in.q), p_.Dk)),
        k_ms_(mean_squares(values<double>(in.k), p_.Dk)),
        v_ms_(mean_squares(v_, p_.Dv)),
        d_o_ms_(mean_squares(d_o_, p_.Dv)),
        q_(values<double>(in.q)),
        k_(values<double>(in.k)),
        dk_(k_.size(), 0),
        dv_(v_.size(), 0),
        dsink_(p_.H, 0),
        dtau_(p_.H, 0) {
    for (const BiasPiece& piece : p_.biases()) dbias_.emplace_back(piece.numbers.numbers.size(), 0.0);
    if (std::holds_alternative<HeadMix>(in.options.score_mix)) dmix_.assign(p_.H * p_.H, 0);
    if (std::holds_alternative<KeyMix>(in.options.score_mix)) dmix_.assign(p_.Tk * p_.Tk, 0);
  }

  ExpectedErrors walk() {
    naive_.for_each_row([&](const Row<double>& row) {
      ds_.assign(p_.H * row.k_len, 0);
      ds_values_.assign(p_.H * row.k_len, 0);
      for (int64_t h = 0; h < p_.H; ++h) add_head(row, h);
      add_biases(row);
      add_mix(row);
      for (int64_t h = 0; h < p_.H; ++h) add_similarity(row, h);
    });
    ExpectedErrors out;
    out.o = o_;
    out.lse = lse_;
    out.dq = dq_;
    out.dk = largest_root(dk_);
    out.dv = largest_root(dv_);
    out.dsink = largest_root(dsink_);
    out.dtau = largest_root(dtau_);
    out.dmix = largest_root(dmix_);
    for (const auto& each : dbias_) out.dbias.push_back(largest_root(each));
    return out;
  }

 private:
  // The slope of the cap: 1 / cosh².
  double cap_slope(const Row<double>& row, int64_t h, int64_t j) const {
    const double cap = p_.options().cap;
    return cap > 0 ? 1 / squared(std::cosh(p_.scale(h) * row.similarity[h * row.k_len + j] / cap)) : 1;
  }

  // Expected error of that slope as a share of it: 2 tanh(x) times the error of x = s / cap, which rounds twice.
  double slope_error(const Row<double>& row, int64_t h, int64_t j) const {
    const double cap = p_.options().cap, scale = std::abs(p_.scale(h));
    if (cap <= 0) return 0;
    const int64_t at = h * row.k_len + j;
    const double x = scale * std::abs(row.similarity[at]) / cap;
    return 2 * std::tanh(x) * (similarity_error(row, h, j) * scale / cap + 2 * kSingle * x) + kSingle;
  }

  // Expected error of q·k, of their cosine, or of 2 q·k - |q|² - |k|².
  double similarity_error(const Row<double>& row, int64_t h, int64_t j) const {
    const int64_t q_row = p_.q_row(row.b, h, row.i), k_row = p_.k_row(row.b, p_.key_head(h), j);
    const double qq = q_ms_[q_row] * static_cast<double>(p_.Dk), kk = k_ms_[k_row] * static_cast<double>(p_.Dk);
    double products = 0;
    for (int64_t d = 0; d < p_.Dk; ++d) products += squared(q_[q_row * p_.Dk + d] * k_[k_row * p_.Dk + d]);
    const double error = std::sqrt(products) * sum_error(p_.Dk);
    if (std::holds_alternative<EuclideanSimilarity>(p_.options().similarity)) return error + kSingle * (qq + kk);
    if (std::holds_alternative<CosineSimilarity>(p_.options().similarity))
      return qq * kk > 0 ? error / std::sqrt(qq * kk) : 0;
    return error;
  }

  // Expected error of a score: its own rounding, the cap's, and that of the similarity behind it.
  double score_error(const Row<double>& row, int64_t h, int64_t j) const {
    const int64_t at = h * row.k_len + j;
    const double behind = similarity_error(row, h, j) * std::abs(p_.scale(h)) * cap_slope(row, h, j);
    return unit_ * std::abs(row.scores[at]) + kSingle * std::abs(row.capped[at]) + behind;
  }

  // Errors of o, lse, dv, dsink; leaves the squares of those of ds.
  void add_head(const Row<double>& row, int64_t h) {
    const int64_t n = row.k_len, q_row = p_.q_row(row.b, h, row.i);
    const double lse = row.lse[h], d_lse = d_lse_[p_.lse_index(row.b, h, row.i)];
    const double lse_rounding = std::isfinite(lse) ? kSingle * std::abs(lse) : 0;
    double lse_square = squared(lse_rounding);
    std::vector<double> weight_error(n, 0), o(p_.Dv, 0), o_squares(p_.Dv, 0);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = h * n + j, k_row = p_.k_row(row.b, p_.key_head(h), j);
      if (!row.kept[at]) continue;
      const double score = score_error(row, h, j);
      weight_error[j] = row.p[at] * (unit_ + score + lse_rounding);
      lse_square += squared(row.p[at] * score);
      const double weight = squared(weight_error[j] * row.factor[at]);
      const double* v = &v_[k_row * p_.Dv];
      for (int64_t d = 0; d < p_.Dv; ++d) {
        o[d] += row.p[at] * row.factor[at] * v[d];
        o_squares[d] += weight * squared(v[d]);
        dv_[k_row * p_.Dv + d] +=
            (weight + rows_walk_ * squared(row.p[at] * row.factor[at])) * squared(d_o_[q_row * p_.Dv + d]);
      }
    }
    o_ = std::max(o_, largest_root(o_squares));
    const double o_square = std::accumulate(o_squares.begin(), o_squares.end(), 0.0) / static_cast<double>(p_.Dv);
    lse_ = std::max(lse_, std::sqrt(lse_square));
    const double o_ms = mean_squares(o, p_.Dv)[0], norm = std::sqrt(d_o_ms_[q_row] * static_cast<double>(p_.Dv));
    const double rounded = squared(unit_ + sum_error(p_.Dv)) * o_ms + squared(least_);
    const double delta_error = row.empty[h] ? 0 : norm * std::sqrt(o_square + rounded);
    double delta = 0;
    for (int64_t d = 0; d < p_.Dv && !row.empty[h]; ++d) delta += d_o_[q_row * p_.Dv + d] * o[d];
    if (row.sink_share[h] > 0) {
      dsink_[h] += squared(row.sink_share[h]) * (squared(delta_error) + squared(delta - d_lse) * lse_square);
    }
    add_ds(row, h, weight_error, delta - d_lse, delta_error);
  }

  void add_ds(const Row<double>& row, int64_t h, const std::vector<double>& weight_error, double change,
              double delta_error) {
    const int64_t n = row.k_len, q_row = p_.q_row(row.b, h, row.i);
    const bool cosine = std::holds_alternative<CosineSimilarity>(p_.options().similarity);
    double along_cosine = 0;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = h * n + j, k_row = p_.k_row(row.b, p_.key_head(h), j);
      if (!row.kept[at]) continue;
      double dp = 0;
      for (int64_t d = 0; d < p_.Dv; ++d) dp += d_o_[q_row * p_.Dv + d] * v_[k_row * p_.Dv + d];
      dp *= row.factor[at];
      const double products = row.factor[at] * std::sqrt(d_o_ms_[q_row] * v_ms_[k_row] * static_cast<double>(p_.Dv));
      const double dp_error = unit_ * std::abs(dp) + sum_error(p_.Dv) * products;
      const double own = squared(weight_error[j] * (dp - change)) +
                         squared(row.p[at]) * (squared(dp_error) + squared(unit_ * (dp - change)));
      ds_[at] = own + squared(row.p[at] * delta_error);
      ds_values_[at] = row.p[at] * (dp - change);
      along_cosine += row.p[at] * std::abs(row.similarity[at]) * cap_slope(row, h, j);
      if (!cosine) continue;
      const double slope = cap_slope(row, h, j), ds = ds_values_[at] * slope;
      dtau_[h] += own * squared(row.similarity[at] * slope) + squared(ds * similarity_error(row, h, j)) +
                  squared(ds * row.similarity[at]) * (squared(pair_sum_error_) + squared(slope_error(row, h, j)));
    }
    dtau_[h] += squared(along_cosine * delta_error);
  }

  void add_biases(const Row<double>& row) {
    for (size_t n = 0; n < dbias_.size(); ++n) {
      const BiasPiece& piece = p_.biases()[n];
      const auto entries = std::max<int64_t>(static_cast<int64_t>(dbias_[n].size()), 1);
      const double walk = walk_square(p_.B * p_.H * p_.Tq * p_.Tk / entries);
      for (int64_t h = 0; h < p_.H; ++h) {
        for (int64_t j = 0; j < row.k_len; ++j) {
          const int64_t at = h * row.k_len + j;
          if (row.kept[at])
            dbias_[n][p_.bias_index(piece, row.b, h, row.i, j)] +=
                (ds_[at] + walk * squared(ds_values_[at])) * squared(p_.bias_slope(piece, row.b, row.i, j));
        }
      }
    }
  }

  void add_mix(const Row<double>& row) {
    const int64_t H = p_.H, n = row.k_len;
    const bool over_heads = std::holds_alternative<HeadMix>(p_.options().score_mix);
    if (dmix_.empty()) return;
    const std::vector<double> mix = over_heads ? values<double>(std::get<HeadMix>(p_.options().score_mix).matrix)
                                               : values<double>(std::get<KeyMix>(p_.options().score_mix).matrix);
    std::vector<double> unmixed(H * n, 0), unmixed_values(H * n, 0);
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t j = 0; j < n; ++j) {
        const double square = ds_[h * n + j];
        if (square == 0) continue;
        for (int64_t other = 0; other < (over_heads ? H : n); ++other) {
          const int64_t cell = over_heads ? h * H + other : other * p_.Tk + j;
          const int64_t at = over_heads ? other * n + j : h * n + other;
          unmixed[at] += squared(mix[cell]) * square;
          unmixed_values[at] += mix[cell] * ds_values_[h * n + j];
          dmix_[cell] += squared(row.capped[at]) * square;
        }
      }
    }
    ds_ = unmixed;
    ds_values_ = unmixed_values;
  }

  void add_similarity(const Row<double>& row, int64_t h) {
    const int64_t n = row.k_len, q_row = p_.q_row(row.b, h, row.i);
    const bool cosine = std::holds_alternative<CosineSimilarity>(p_.options().similarity);
    const bool euclidean = std::holds_alternative<EuclideanSimilarity>(p_.options().similarity);
    const double* q = &q_[q_row * p_.Dk];
    std::vector<double> dq(p_.Dk, 0);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = h * n + j, k_row = p_.k_row(row.b, p_.key_head(h), j);
      const double square = ds_[at] + squared(ds_values_[at] * slope_error(row, h, j));
      const double by = squared(cap_slope(row, h, j) * p_.scale(h) * (euclidean ? 2 : 1)),
                   value = squared(ds_values_[at]);
      const double of_q = (square + keys_walk_ * value) * by, of_k = (square + rows_walk_ * value) * by;
      if (of_q == 0 && of_k == 0) continue;
      const double* k = &k_[k_row * p_.Dk];
      double* dk = &dk_[k_row * p_.Dk];
      const double both = cosine ? squared(static_cast<double>(p_.Dk)) * q_ms_[q_row] * k_ms_[k_row] : 1;
      if (both == 0) continue;
      for (int64_t d = 0; d < p_.Dk; ++d) {
        dq[d] += of_q / both * (euclidean ? squared(q[d]) + squared(k[d]) : squared(k[d]));
        dk[d] += of_k / both * (euclidean ? squared(q[d]) + squared(k[d]) : squared(q[d]));
      }
    }
    dq_ = std::max(dq_, largest_root(dq));
  }

  NaiveForward<double> naive_;
  const Problem& p_;
  double unit_, least_;
  double pair_sum_error_ = sum_error(p_.B * p_.Tq * p_.Tk);  // of a sum over all pairs of a head
  double keys_walk_ = walk_square(p_.Tk), rows_walk_ = walk_square(p_.Tq * (p_.H / std::max<int64_t>(p_.Hkv, 1)));
  std::vector<double> v_, d_o_, d_lse_;
  std::vector<double> q_ms_, k_ms_, v_ms_, d_o_ms_;
  std::vector<double> q_, k_;
  std::vector<double> ds_, ds_values_;  // of one row: squares of the errors of ds, and ds itself
  double o_ = 0, lse_ = 0, dq_ = 0;
  std::vector<double> dk_, dv_, dsink_, dtau_, dmix_;
  std::vector<std::vector<double>> dbias_;
};

}  // namespace

ExpectedErrors expected_errors(const CaseInputs& in) { return ErrorWalk(in).walk(); }

}  // namespace mh
