// Judging outputs: bounds derived from the plain algorithm, comparisons element by element.
#include "multihead/check/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "multihead/check/plain.h"
#include "multihead/check/problem.h"
#include "multihead/check/reference.h"
#include "multihead/check/rounding.h"

namespace mh {
namespace {

using reference::values;

// The largest error of so many rows is no luck any more; the elements of a row share one.
constexpr size_t kManyRows = 1000;

// Weights below the smallest normal f32 may be taken for 0; a gradient in these cases is at most 2^8 times as large.
constexpr double kUnderflow = 0x1p-126 * 256;

// Elements that the reference leaves infinite or NaN only have to be so too; -inf has to be -inf.
double error_of(double got, double wanted) {
  if (std::isfinite(wanted)) return std::isnan(got) ? std::numeric_limits<double>::infinity() : std::abs(got - wanted);
  if (wanted == -std::numeric_limits<double>::infinity() ? got == wanted : !std::isfinite(got)) return 0;
  return std::numeric_limits<double>::infinity();
}

double max_error(const std::vector<double>& got, const std::vector<double>& wanted) {
  double most = 0;
  for (size_t n = 0; n < wanted.size(); ++n) most = std::max(most, error_of(got[n], wanted[n]));
  return most;
}

double largest_finite(const std::vector<double>& x) {
  double most = 0;
  for (double each : x) most = std::isfinite(each) ? std::max(most, std::abs(each)) : most;
  return most;
}

// Expected errors in the order of named_outputs.
std::vector<double> in_order(const ExpectedErrors& e, const CaseOutputs& outputs) {
  std::vector<double> out{e.o, e.lse, e.dq, e.dk, e.dv};
  out.insert(out.end(), e.dbias.begin(), e.dbias.end());
  if (outputs.gradients.dsink) out.push_back(e.dsink);
  if (outputs.gradients.dtau) out.push_back(e.dtau);
  if (outputs.gradients.dmix) out.push_back(e.dmix);
  return out;
}

}  // namespace

CaseOutputs run_case(const CaseInputs& in) {
  CaseOutputs out;
  out.result = attention(in.q, in.k, in.v, in.options);
  out.gradients = attention_backward({in.q, in.k, in.v, out.result}, in.d_o, in.d_lse, in.options);
  return out;
}

std::vector<std::pair<std::string, Tensor>> named_outputs(const CaseOutputs& outputs) {
  const AttentionGradients& g = outputs.gradients;
  std::vector<std::pair<std::string, Tensor>> out{
      {"o", outputs.result.o}, {"lse", outputs.result.lse}, {"dq", g.dq}, {"dk", g.dk}, {"dv", g.dv}};
  for (size_t n = 0; n < g.dbias.size(); ++n) out.emplace_back(fmt::format("dbias{}", n), g.dbias[n]);
  if (g.dsink) out.emplace_back("dsink", g.dsink);
  if (g.dtau) out.emplace_back("dtau", g.dtau);
  if (g.dmix) out.emplace_back("dmix", g.dmix);
  return out;
}

double unit_in_last_place(DType dtype, double x) {
  if (x == 0 || !std::isfinite(x)) return 0;
  const int digits = dtype == DType::bf16 ? 7 : dtype == DType::f16 ? 10 : 23;
  const int lowest = dtype == DType::f16 ? -14 : -126;
  return std::ldexp(1.0, std::max(std::ilogb(x), lowest) - digits);
}

JudgedCase::JudgedCase(const AttentionCase& c) : c(c), in(make_inputs(c)) {
  const AttentionCall call{in.q, in.k, in.v, {}};
  const CaseOutputs exact{reference::attention(in.q, in.k, in.v, in.options),
                          reference::attention_backward(call, in.d_o, in.d_lse, in.options)};
  const CaseOutputs rough{plain::attention(in.q, in.k, in.v, in.options),
                          plain::attention_backward(call, in.d_o, in.d_lse, in.options)};
  const auto wanted = named_outputs(exact), theirs = named_outputs(rough);
  const auto rows = static_cast<size_t>(exact.result.lse.count());
  const std::vector<double> expected = in_order(expected_errors(in), exact);
  for (size_t n = 0; n < wanted.size(); ++n) {
    Expectation e{.name = wanted[n].first, .values = values<double>(wanted[n].second), .bound = 0};
    const bool forward = n < 2;
    const double factor = forward ? 1.5 : 2.0;
    const double ulp = unit_in_last_place(theirs[n].second.dtype(), largest_finite(e.values));
    double plain_error = max_error(values<double>(theirs[n].second), e.values);
    if (!forward || rows < kManyRows) plain_error = std::max(plain_error, expected[n]);
    e.bound = factor * plain_error + 2 * ulp + kUnderflow;
    expectations_.push_back(std::move(e));
  }
  const Tensor empty = reference::empty_rows(in.q, in.k, in.options);
  empty_.assign(empty.data<uint8_t>(), empty.data<uint8_t>() + empty.count());
}

std::vector<std::string> JudgedCase::judge(const CaseOutputs& outputs) const {
  std::vector<std::string> failures;
  const auto got = named_outputs(outputs);
  if (got.size() != expectations_.size()) {
    return {fmt::format("{} outputs came back, {} expected", got.size(), expectations_.size())};
  }
  for (size_t n = 0; n < got.size(); ++n) {
    const Expectation& e = expectations_[n];
    if (got[n].second.count() != static_cast<int64_t>(e.values.size())) {
      failures.push_back(
          fmt::format("{} has {} elements, {} expected", e.name, got[n].second.count(), e.values.size()));
      continue;
    }
    const double error = max_error(values<double>(got[n].second), e.values);
    if (error > e.bound) {
      failures.push_back(fmt::format("{}: error {:.3g} over the bound {:.3g} (largest {:.3g})", e.name, error, e.bound,
                                     largest_finite(e.values)));
    }
  }
  if (failures.empty()) judge_empty_rows(outputs, failures);
  return failures;
}

double JudgedCase::worst_share(const CaseOutputs& outputs) const {
  double worst = 0;
  const auto got = named_outputs(outputs);
  for (size_t n = 0; n < got.size(); ++n) {
    const double error = max_error(values<double>(got[n].second), expectations_[n].values);
    if (error > 0) worst = std::max(worst, error / expectations_[n].bound);
  }
  return worst;
}

void JudgedCase::judge_empty_rows(const CaseOutputs& outputs, std::vector<std::string>& failures) const {
  const reference::Problem problem(in.q, in.k, in.v, in.options);
  const auto o = values<double>(outputs.result.o), dq = values<double>(outputs.gradients.dq);
  for (int64_t b = 0; b < problem.B; ++b) {
    for (int64_t h = 0; h < problem.H; ++h) {
      for (int64_t i = 0; i < problem.spans[b].q_len; ++i) {
        if (!empty_[problem.lse_index(b, h, i)]) continue;
        const int64_t row = problem.q_row(b, h, i);
        const bool zero =
            std::all_of(&o[row * problem.Dv], &o[row * problem.Dv] + problem.Dv, [](double x) { return x == 0; });
        const bool still =
            c.mix != CaseMix::none ||
            std::all_of(&dq[row * problem.Dk], &dq[row * problem.Dk] + problem.Dk, [](double x) { return x == 0; });
        if (zero && still) continue;
        failures.push_back(
            fmt::format("row {} of head {} of sequence {} keeps nothing, but {} is not 0", i, h, b, zero ? "dq" : "o"));
        return;
      }
    }
  }
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.count() == 0 || std::memcmp(x.view().data, y.view().data, x.count() * size_of(x.dtype())) == 0;
}

uint64_t hash_of(const Tensor& x, uint64_t before) {
  constexpr uint64_t kBasis = 0xcbf29ce484222325, kPrime = 0x100000001b3;
  uint64_t hash = before == 0 ? kBasis : before;
  const Tensor whole = x.contiguous();
  const auto* bytes = static_cast<const unsigned char*>(whole.view().data);
  for (int64_t n = 0; n < whole.count() * size_of(whole.dtype()); ++n) hash = (hash ^ bytes[n]) * kPrime;
  return hash;
}

std::vector<std::string> differing(const CaseOutputs& a, const CaseOutputs& b) {
  std::vector<std::string> out;
  const auto x = named_outputs(a), y = named_outputs(b);
  for (size_t n = 0; n < x.size() && n < y.size(); ++n) {
    if (!same_bits(x[n].second, y[n].second)) out.push_back(x[n].first);
  }
  return out;
}

}  // namespace mh
