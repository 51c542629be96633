// Attention in its three steps, S = QKᵀ, P = softmax(S), O = PV, one query position at a time.
// In double it is the reference; in float with S and P rounded to a type it is the algorithm whose errors set the
// bounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "multihead/check/problem.h"

namespace mh::reference {

// All heads of one query position; index h · k_len + j.
template <class Real>
struct Row {
  int64_t b = 0, i = 0, k_len = 0;
  std::vector<Real> similarity, capped, scores, p, factor;  // factor: of dropout
  std::vector<char> kept;
  std::vector<Real> lse, sink_share;  // per head
  std::vector<char> empty;            // per head: no pair is kept
};

template <class Real>
struct Outputs {
  std::vector<Real> o, lse;
};

template <class Real>
class NaiveForward {
 public:
  static constexpr Real kNone = -std::numeric_limits<Real>::infinity();

  // rounding: the type that S, P, dP and dS are rounded to; f64 for none.
  NaiveForward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options, DType rounding)
      : problem(q, k, v, options), rounding_(rounding), q_(values<Real>(q)), k_(values<Real>(k)), v_(values<Real>(v)) {
    if (std::holds_alternative<CosineSimilarity>(options.similarity)) {
      q_lengths_ = make_unit(q_);
      k_lengths_ = make_unit(k_);
    }
    if (const auto* heads = std::get_if<HeadMix>(&options.score_mix)) head_mix_ = values<Real>(heads->matrix);
    if (const auto* keys = std::get_if<KeyMix>(&options.score_mix)) {
      key_mix_ = values<Real>(keys->matrix);
      key_mix_width_ = keys->matrix.size(-1);
    }
    if (options.sink) sink_ = values<Real>(options.sink);
  }

  const Problem problem;

  // visit(row) for each query position of each sequence.
  template <class Visit>
  void for_each_row(Visit&& visit) {
    Row<Real> row;
    for (int64_t b = 0; b < problem.B; ++b) {
      turn_keys(b);
      for (int64_t i = 0; i < problem.spans[b].q_len; ++i) {
        fill_row(b, i, row);
        visit(row);
      }
    }
  }

  Outputs<Real> forward() {
    Outputs<Real> out;
    out.o.assign(problem.o_shape().count(), 0);
    out.lse.assign(problem.lse_shape().count(), 0);
    for_each_row([&](const Row<Real>& row) {
      for (int64_t h = 0; h < problem.H; ++h) {
        add_values(row, h, &out.o[problem.q_row(row.b, h, row.i) * problem.Dv]);
        out.lse[problem.lse_index(row.b, h, row.i)] = row.lse[h];
      }
    });
    return out;
  }

 protected:
  Real rounded(Real x) const {
    if (rounding_ == DType::bf16) return static_cast<float>(bf16(static_cast<float>(x)));
    if (rounding_ == DType::f16) return static_cast<float>(f16(static_cast<float>(x)));
    return x;
  }

  // Rows of unit length, and their lengths before; a row shorter than 2^-60 becomes 0.
  std::vector<Real> make_unit(std::vector<Real>& rows) const {
    std::vector<Real> lengths(rows.size() / problem.Dk);
    for (size_t r = 0; r < lengths.size(); ++r) {
      Real* x = &rows[r * problem.Dk];
      Real sum = 0;
      for (int64_t d = 0; d < problem.Dk; ++d) sum += x[d] * x[d];
      const Real length = std::sqrt(sum);
      lengths[r] = length < static_cast<Real>(0x1p-60) ? 0 : length;
      for (int64_t d = 0; d < problem.Dk; ++d) x[d] = lengths[r] == 0 ? 0 : x[d] / length;
    }
    return lengths;
  }

  void turn(const std::vector<Real>& rows, int64_t b, int64_t width, std::vector<Real>& turned) const {
    const int64_t k_len = problem.spans[b].keys;
    turned.resize(problem.Hkv * width * k_len);
    for (int64_t hk = 0; hk < problem.Hkv; ++hk) {
      for (int64_t j = 0; j < k_len; ++j) {
        const Real* row = &rows[problem.k_row(b, hk, j) * width];
        for (int64_t d = 0; d < width; ++d) turned[(hk * width + d) * k_len + j] = row[d];
      }
    }
  }

  // Keys and values of a sequence with the keys innermost, so that products run over all keys at once.
  void turn_keys(int64_t b) {
    turn(k_, b, problem.Dk, k_turned_);
    turn(v_, b, problem.Dv, v_turned_);
  }

  // out[j] = Σ_d x[d] · turned[d][j], in ascending order of d.
  static void product(const Real* x, const Real* turned, int64_t width, int64_t count, Real* out) {
    std::fill(out, out + count, Real{0});
    for (int64_t d = 0; d < width; ++d) {
      const Real factor = x[d];
      const Real* line = turned + d * count;
      for (int64_t j = 0; j < count; ++j) out[j] += factor * line[j];
    }
  }

  void fill_row(int64_t b, int64_t i, Row<Real>& row) const {
    const int64_t n = problem.spans[b].keys;
    row.b = b;
    row.i = i;
    row.k_len = n;
    for (auto* each : {&row.similarity, &row.capped, &row.p, &row.factor}) each->resize(problem.H * n);
    row.kept.resize(problem.H * n);
    row.lse.resize(problem.H);
    row.sink_share.resize(problem.H);
    row.empty.resize(problem.H);
    for (int64_t h = 0; h < problem.H; ++h) fill_similarity(row, h);
    row.scores = mixed(row);
    for (int64_t h = 0; h < problem.H; ++h) softmax(row, h, row.scores.data() + h * n);
  }

  void fill_similarity(Row<Real>& row, int64_t h) const {
    const int64_t n = row.k_len, hk = problem.key_head(h);
    const Real* q = &q_[problem.q_row(row.b, h, row.i) * problem.Dk];
    Real* similarity = row.similarity.data() + h * n;
    const Real* turned = k_turned_.data() + hk * problem.Dk * n;
    product(q, turned, problem.Dk, n, similarity);
    if (std::holds_alternative<EuclideanSimilarity>(problem.options().similarity)) {
      Real qq = 0;
      for (int64_t d = 0; d < problem.Dk; ++d) qq += q[d] * q[d];
      for (int64_t j = 0; j < n; ++j) {
        Real kk = 0;
        for (int64_t d = 0; d < problem.Dk; ++d) kk += turned[d * n + j] * turned[d * n + j];
        similarity[j] = 2 * similarity[j] - qq - kk;
      }
    }
    const Real scale = static_cast<Real>(problem.scale(h)), cap = static_cast<Real>(problem.options().cap);
    for (int64_t j = 0; j < n; ++j) {
      const Real s = scale * similarity[j];
      row.capped[h * n + j] = cap > 0 ? cap * std::tanh(s / cap) : s;
    }
  }

  std::vector<Real> mixed(const Row<Real>& row) const {
    const int64_t H = problem.H, n = row.k_len;
    if (head_mix_.empty() && key_mix_.empty()) return row.capped;
    std::vector<Real> out(H * n, 0);
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t j = 0; j < n; ++j) {
        if (!head_mix_.empty()) {
          for (int64_t g = 0; g < H; ++g) out[h * n + j] += head_mix_[h * H + g] * row.capped[g * n + j];
        } else {
          for (int64_t l = 0; l < n; ++l) out[h * n + j] += row.capped[h * n + l] * key_mix_[l * key_mix_width_ + j];
        }
      }
    }
    return out;
  }

  // Adds bias, drops, and makes the weights of head h; s becomes the final scores.
  void softmax(Row<Real>& row, int64_t h, Real* s) const {
    const int64_t n = row.k_len;
    char* kept = row.kept.data() + h * n;
    Real top = sink_.empty() ? kNone : sink_[h];
    row.empty[h] = true;
    for (int64_t j = 0; j < n; ++j) {
      kept[j] = problem.keeps(row.b, h, row.i, j);
      row.p[h * n + j] = row.factor[h * n + j] = 0;
      if (!kept[j]) continue;
      const Real bias = static_cast<Real>(problem.bias(row.b, h, row.i, j));
      s[j] = rounded(s[j] + bias);
      kept[j] = bias != kNone && s[j] != kNone;
      if (!kept[j]) continue;
      row.empty[h] = false;
      row.factor[h * n + j] = static_cast<Real>(problem.dropout_factor(row.b, h, row.i, j));
      top = std::max(top, s[j]);
    }
    row.lse[h] = kNone;
    row.sink_share[h] = 0;
    if (row.empty[h] && top == kNone) return;
    Real sum = sink_.empty() ? 0 : std::exp(sink_[h] - top);
    for (int64_t j = 0; j < n; ++j) {
      if (kept[j]) sum += row.p[h * n + j] = std::exp(s[j] - top);
    }
    row.lse[h] = top + std::log(sum);
    if (!sink_.empty()) row.sink_share[h] = std::exp(sink_[h] - top) / sum;
    for (int64_t j = 0; j < n; ++j) {
      if (kept[j]) row.p[h * n + j] = rounded(row.p[h * n + j] / sum);
    }
  }

  // What reaches the values: dropout(p).
  Real dropped_out(const Row<Real>& row, int64_t at) const { return rounded(row.p[at] * row.factor[at]); }

  void add_values(const Row<Real>& row, int64_t h, Real* o) const {
    for (int64_t j = 0; j < row.k_len; ++j) {
      const int64_t at = h * row.k_len + j;
      if (!row.kept[at]) continue;
      const Real weight = dropped_out(row, at);
      const Real* v = &v_[problem.k_row(row.b, problem.key_head(h), j) * problem.Dv];
      for (int64_t d = 0; d < problem.Dv; ++d) o[d] += weight * v[d];
    }
    for (int64_t d = 0; d < problem.Dv; ++d) o[d] = rounded(o[d]);
  }

  DType rounding_;
  std::vector<Real> q_, k_, v_;
  std::vector<Real> q_lengths_, k_lengths_;  // cosine only
  std::vector<Real> k_turned_, v_turned_;
  std::vector<Real> head_mix_, key_mix_, sink_;
  int64_t key_mix_width_ = 0;
};

}  // namespace mh::reference
