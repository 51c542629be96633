// Comparing tensors in the tests of ops.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "multihead/check/verdict.h"
#include "multihead/tensor/tensor.h"

namespace mh::test {

inline std::vector<double> numbers(const Tensor& t) {
  const Tensor dense = t.to(DType::f64).contiguous();
  return {dense.data<double>(), dense.data<double>() + dense.count()};
}

// max |a - b| as a share of max |b|; equal infinities and two NaN count as equal, any other non-finite pair as
// infinity.
inline double relative_error(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return HUGE_VAL;
  const std::vector<double> x = numbers(a), y = numbers(b);
  double error = 0, largest = 1e-30;
  for (size_t n = 0; n < x.size(); ++n) {
    if (x[n] == y[n] || (std::isnan(x[n]) && std::isnan(y[n]))) continue;
    if (!std::isfinite(x[n]) || !std::isfinite(y[n])) return HUGE_VAL;
    error = std::max(error, std::abs(x[n] - y[n]));
  }
  for (const double each : y) {
    if (std::isfinite(each)) largest = std::max(largest, std::abs(each));
  }
  return error / largest;
}

inline double rms(const Tensor& t) {
  double sum = 0;
  const std::vector<double> x = numbers(t);
  for (const double each : x) sum += each * each;
  return std::sqrt(sum / std::max<double>(1, static_cast<double>(x.size())));
}

using mh::same_bits;

// Where nothing may be written.
inline constexpr float kPoison = 12345.5f;

// The sentence `call` refuses with, or "" where it does not.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' does not say '" << part << "'";
}

}  // namespace mh::test
