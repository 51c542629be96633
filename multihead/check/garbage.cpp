// Planting garbage and comparing bits.
#include "multihead/check/garbage.h"

#include <array>
#include <bit>
#include <limits>

#include "multihead/base/random.h"
#include "multihead/check/problem.h"

namespace mh {
namespace {

using reference::BiasPiece;
using reference::Problem;
using reference::values;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double bad_number(Random& random, DType dtype) {
  const double huge = dtype == DType::f16 ? 65504 : 3e38;
  return std::array{std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, huge, -huge}[random.below(5)];
}

// Which pairs a case keeps, all four loops in one array.
class KeptPairs {
 public:
  explicit KeptPairs(const CaseInputs& in) : problem(in.q, in.k, in.v, in.options) {
    for (int64_t b = 0; b < problem.B; ++b)
      begins_.push_back(begins_.back() + problem.H * problem.spans[b].q_len * problem.spans[b].k_len);
    kept_.resize(begins_.back());
    each([&](int64_t b, int64_t h, int64_t i, int64_t j, char& kept) {
      kept = problem.keeps(b, h, i, j) && problem.bias(b, h, i, j) != -kInfinity;
    });
  }

  template <class F>
  void each(F&& f) {
    for (int64_t b = 0; b < problem.B; ++b) {
      for (int64_t h = 0; h < problem.H; ++h) {
        for (int64_t i = 0; i < problem.spans[b].q_len; ++i) {
          for (int64_t j = 0; j < problem.spans[b].k_len; ++j) f(b, h, i, j, at(b, h, i, j));
        }
      }
    }
  }

  char& at(int64_t b, int64_t h, int64_t i, int64_t j) {
    const auto& span = problem.spans[b];
    return kept_[begins_[b] + (h * span.q_len + i) * span.k_len + j];
  }

  bool row_is_empty(int64_t b, int64_t h, int64_t i) {
    for (int64_t j = 0; j < problem.spans[b].k_len; ++j) {
      if (at(b, h, i, j)) return false;
    }
    return true;
  }

  const Problem problem;

 private:
  std::vector<int64_t> begins_{0};
  std::vector<char> kept_;
};

// Row t of head h of sequence b: (B, heads, T, D), or packed with the sequence's begin.
Tensor row_of(const Tensor& rows, const Problem& problem, int64_t b, int64_t h, int64_t t, bool of_keys) {
  if (!problem.packed) return rows.select(0, b).select(0, h).select(0, t);
  const int64_t begin = of_keys ? problem.spans[b].k_begin : problem.spans[b].q_begin;
  return rows.select(0, begin + t).select(0, h);
}

void spoil(const Tensor& row, Random& random) {
  row.copy_from(full(row.shape(), bad_number(random, row.dtype()), row.dtype()));
}

void spoil_keys(Planted& out, KeptPairs& pairs, Random& random) {
  const Problem& p = pairs.problem;
  std::vector<char> used(p.packed ? out.in.k.size(0) * p.Hkv : p.B * p.Hkv * p.Tk, 0);
  pairs.each([&](int64_t b, int64_t h, int64_t, int64_t j, char kept) { used[p.k_row(b, p.key_head(h), j)] |= kept; });
  for (int64_t b = 0; b < p.B; ++b) {
    for (int64_t hk = 0; hk < p.Hkv; ++hk) {
      for (int64_t j = 0; j < p.spans[b].k_len; ++j) {
        if (used[p.k_row(b, hk, j)]) continue;
        spoil(row_of(out.in.k, p, b, hk, j, true), random);
        spoil(row_of(out.in.v, p, b, hk, j, true), random);
        ++out.places;
      }
    }
  }
}

void spoil_empty_rows(Planted& out, KeptPairs& pairs, Random& random) {
  const Problem& p = pairs.problem;
  for (int64_t b = 0; b < p.B; ++b) {
    for (int64_t h = 0; h < p.H; ++h) {
      for (int64_t i = 0; i < p.spans[b].q_len; ++i) {
        if (!pairs.row_is_empty(b, h, i)) continue;
        spoil(row_of(out.in.q, p, b, h, i, false), random);
        spoil(row_of(out.in.d_o, p, b, h, i, false), random);
        // With a sink the row's lse is the sink, and its gradient counts.
        if (out.in.d_lse && !out.in.options.sink) {
          out.in.d_lse.data<float>()[p.lse_index(b, h, i)] = static_cast<float>(bad_number(random, DType::f32));
        }
        ++out.places;
      }
    }
  }
}

void spoil_bias(Planted& out, KeptPairs& pairs, Random& random) {
  const Problem& p = pairs.problem;
  for (size_t n = 0; n < p.biases().size(); ++n) {
    const BiasPiece& piece = p.biases()[n];
    if (piece.kind == BiasPiece::Kind::alibi) continue;
    std::vector<char> used(piece.numbers.numbers.size(), 0);
    pairs.each([&](int64_t b, int64_t h, int64_t i, int64_t j, char) {
      if (p.keeps(b, h, i, j)) used[p.bias_index(piece, b, h, i, j)] = 1;
    });
    const Tensor& numbers = piece.kind == BiasPiece::Kind::dense ? std::get<DenseBias>(out.in.options.bias[n]).values
                                                                 : std::get<T5Bias>(out.in.options.bias[n]).table;
    std::vector<double> spoiled = values<double>(numbers);
    for (size_t at = 0; at < used.size(); ++at) {
      if (used[at]) continue;
      spoiled[at] = bad_number(random, numbers.dtype());
      ++out.places;
    }
    numbers.copy_from(reference::to_tensor(spoiled, numbers.shape(), numbers.dtype()));
  }
}

// Marks the keys that reached rows keep.
void spread(Planted& out, KeptPairs& pairs) {
  const Problem& p = pairs.problem;
  pairs.each([&](int64_t b, int64_t h, int64_t i, int64_t j, char kept) {
    if (kept && out.reached_rows[p.lse_index(b, h, i)]) out.reached_keys[p.k_row(b, p.key_head(h), j)] = 1;
  });
}

bool same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

// Whether the rows that were not reached are equal.
bool rows_equal(const Tensor& a, const Tensor& b, const std::vector<char>& reached) {
  const auto x = values<double>(a), y = values<double>(b);
  if (reached.empty()) return true;
  const size_t width = x.size() / reached.size();
  for (size_t row = 0; row < reached.size(); ++row) {
    for (size_t d = 0; d < width && !reached[row]; ++d) {
      if (!same(x[row * width + d], y[row * width + d])) return false;
    }
  }
  return true;
}

}  // namespace

Planted plant_everywhere(const AttentionCase& c, uint64_t seed) {
  Planted out;
  out.in = make_inputs(c);
  out.where = "everywhere";
  if (c.mix != CaseMix::none) return out;
  KeptPairs pairs(out.in);
  Random random(seed, 29);
  spoil_keys(out, pairs, random);
  spoil_empty_rows(out, pairs, random);
  spoil_bias(out, pairs, random);
  return out;
}

Planted plant_by_pair(const AttentionCase& c, uint64_t seed) {
  Planted out;
  out.in = make_inputs(c);
  if (c.mix != CaseMix::none) return out;
  KeptPairs pairs(out.in);
  const Problem& p = pairs.problem;
  Random random(seed, 31);
  const bool of_keys = random.below(2) == 0, first = random.below(2) == 0;
  const int64_t heads = of_keys ? p.Hkv : p.H;
  for (int attempt = 0; attempt < 8 && out.places == 0 && p.B > 0; ++attempt) {
    const int64_t b = random.below(p.B), head = random.below(heads);
    const int64_t length = of_keys ? p.spans[b].k_len : p.spans[b].q_len;
    if (length == 0) continue;
    const int64_t at = random.below(length);
    out.reached_rows.assign(p.lse_shape().count(), 0);
    out.reached_keys.assign(p.packed ? out.in.k.size(0) * p.Hkv : p.B * p.Hkv * p.Tk, 0);
    int64_t kept_count = 0, dropped_count = 0;
    pairs.each([&](int64_t pb, int64_t h, int64_t i, int64_t j, char kept) {
      if (pb != b || (of_keys ? j != at || p.key_head(h) != head : i != at || h != head)) return;
      ++(kept ? kept_count : dropped_count);
      if (kept) out.reached_rows[p.lse_index(b, h, i)] = 1;
    });
    if (kept_count == 0 || dropped_count == 0) continue;
    if (of_keys) out.reached_keys[p.k_row(b, head, at)] = 1;
    out.where = fmt::format("in {}[{}, {}, {}]", of_keys ? (first ? "k" : "v") : (first ? "q" : "d_o"), b, head, at);
    const Tensor& target = of_keys ? (first ? out.in.k : out.in.v) : (first ? out.in.q : out.in.d_o);
    spoil(row_of(target, p, b, head, at, of_keys), random);
    out.places = 1;
    spread(out, pairs);
  }
  return out;
}

std::vector<std::string> judge_garbage(const Planted& planted, const CaseOutputs& clean, const CaseOutputs& dirty) {
  std::vector<std::string> failures;
  const bool everywhere = planted.reached_rows.empty() && planted.reached_keys.empty();
  const auto report = [&](const std::string& name) {
    failures.push_back(fmt::format("{}: garbage that is dropped changed it; planted {}", name, planted.where));
  };
  if (everywhere) {
    for (const std::string& name : differing(clean, dirty)) report(name);
    return failures;
  }
  std::vector<char> rows = planted.reached_rows;
  const Problem problem(planted.in.q, planted.in.k, planted.in.v, planted.in.options);
  for (int64_t b = 0; b < problem.B; ++b) {
    for (int64_t h = 0; h < problem.H; ++h) {
      for (int64_t i = 0; i < problem.spans[b].q_len; ++i)
        rows[problem.q_row(b, h, i)] = planted.reached_rows[problem.lse_index(b, h, i)];
    }
  }
  if (!rows_equal(clean.result.o, dirty.result.o, rows)) report("o");
  if (!rows_equal(clean.result.lse, dirty.result.lse, planted.reached_rows)) report("lse");
  if (!rows_equal(clean.gradients.dq, dirty.gradients.dq, rows)) report("dq");
  if (!rows_equal(clean.gradients.dk, dirty.gradients.dk, planted.reached_keys)) report("dk");
  if (!rows_equal(clean.gradients.dv, dirty.gradients.dv, planted.reached_keys)) report("dv");
  return failures;
}

}  // namespace mh
