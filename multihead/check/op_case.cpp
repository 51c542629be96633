// Drawing inputs, differences of the reference, bounds, and comparing.
#include "multihead/check/op_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/autograd/tape.h"
#include "multihead/base/out_of_memory.h"
#include "multihead/base/parallel.h"
#include "multihead/base/random.h"
#include "multihead/check/problem.h"
#include "multihead/check/verdict.h"

namespace mh {

namespace {

using reference::values;

constexpr uint64_t kSeed = 20240;
constexpr int kDraws = 4;
// Elements of an input whose gradient is looked at: each takes some calls of the reference.
int64_t most_elements(int64_t count) { return std::clamp<int64_t>(1'000'000 / std::max<int64_t>(1, count), 8, 160); }

double unit_roundoff(DType type) { return type == DType::bf16 ? 0x1p-9 : type == DType::f16 ? 0x1p-12 : 0x1p-25; }

Tensor draw(const OpInput& input, uint64_t stream, DType type) {
  const Tensor x = empty(input.shape);
  Random random(kSeed, stream);
  for (int64_t n = 0; n < x.count(); ++n)
    x.data<float>()[n] = static_cast<float>(input.centre + input.spread * random.normal());
  return input.parameter ? x.to(type).to(DType::f32) : x.to(type);
}

// Each number changed by a random part of `size` times itself.
Numbers shaken(const Numbers& x, double size, Random& random) {
  Numbers out = x;
  for (double& each : out) each *= 1 + size * random.uniform(-1, 1);
  return out;
}

// Elements that are looked at: all of few, else some of many with the last among them.
std::vector<int64_t> chosen(int64_t count) {
  std::vector<int64_t> at;
  const int64_t most = most_elements(count), step = (count + most - 1) / most;
  for (int64_t n = count - 1; n >= 0; n -= std::max<int64_t>(1, step)) at.push_back(n);
  return at;
}

using Function = std::function<Numbers(const std::vector<Numbers>&)>;

double weighted(const Function& f, const std::vector<Numbers>& x, const Numbers& c) {
  const Numbers y = f(x);
  double sum = 0;
  for (size_t n = 0; n < y.size(); ++n) sum += c[n] * y[n];
  return sum;
}

// d(Σ c · f) by one element of input `which`, by differences of five points `h` apart.
double difference(const Function& f, std::vector<Numbers>& x, const Numbers& c, size_t which, int64_t at, double h) {
  double& place = x[which][static_cast<size_t>(at)];
  const double was = place;
  const auto moved = [&](double by) {
    place = was + by;
    return weighted(f, x, c);
  };
  const double slope = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
  place = was;
  return slope;
}

constexpr double kStep = 2e-3;

Numbers differences(const Function& f, std::vector<Numbers> x, const Numbers& c, size_t which,
                    const std::vector<int64_t>& at, double h = kStep) {
  Numbers out;
  for (const int64_t n : at) out.push_back(difference(f, x, c, which, n, h));
  return out;
}

double largest(const Numbers& x) {
  double most = 0;
  for (const double each : x) most = std::max(most, std::abs(each));
  return most;
}

double furthest(const Numbers& a, const Numbers& b) {
  double most = 0;
  for (size_t n = 0; n < b.size(); ++n) {
    if (std::isnan(a[n])) return std::numeric_limits<double>::infinity();
    most = std::max(most, std::abs(a[n] - b[n]));
  }
  return most;
}

// The same elements, each beside one that is none of them.
Tensor spread_out(const Tensor& x) {
  std::vector<int64_t> sizes;
  for (int axis = 0; axis < x.rank(); ++axis) sizes.push_back(x.size(axis));
  sizes.push_back(2);
  const Tensor out = full(Shape(sizes), 1e4, x.dtype()).select(-1, 0);
  out.copy_from(x);
  return out;
}

}  // namespace

std::vector<DType> float_types() { return {DType::f32, DType::bf16, DType::f16}; }

JudgedOp::JudgedOp(const OpCase& of, DType type) : label(fmt::format("{} {}", of.label, name(type))), op_(of.op) {
  for (size_t n = 0; n < of.inputs.size(); ++n) inputs_.push_back(draw(of.inputs[n], n, type));
  const Tensor y = op_(inputs_);
  c_ = draw({.shape = y.shape()}, of.inputs.size(), y.dtype());
  expect(of, type);
}

void JudgedOp::expect(const OpCase& of, DType type) {
  std::vector<Numbers> x;
  for (const Tensor& input : inputs_) x.push_back(values<double>(input));
  const Numbers c = values<double>(c_);
  const double sums = (2 + std::sqrt(static_cast<double>(of.terms))) * unit_roundoff(DType::f32);
  const double kept = sums + 2 * unit_roundoff(type);

  Expectation value{.name = "y", .at = {}, .values = of.reference(x)};
  for (size_t n = 0; n < value.values.size(); ++n) value.at.push_back(static_cast<int64_t>(n));
  expectations_.push_back(value);
  for (size_t n = 0; n < x.size(); ++n) {
    Expectation d{.name = fmt::format("gradient {}", n), .at = chosen(inputs_[n].count()), .values = {}};
    d.values = differences(of.reference, x, c, n, d.at);
    const double doubt = furthest(differences(of.reference, x, c, n, d.at, kStep / 2), d.values);
    if (doubt > 1e-6 * largest(d.values))
      doubts_.push_back(
          fmt::format("{}: differences of two widths disagree by {:.3g} of {:.3g}", d.name, doubt, largest(d.values)));
    expectations_.push_back(d);
  }

  Random random(kSeed, 1000);
  for (int turn = 0; turn < kDraws; ++turn) {
    std::vector<Numbers> near, far;
    for (const Numbers& each : x) {
      near.push_back(shaken(each, sums, random));
      far.push_back(shaken(each, kept, random));
    }
    const Numbers weights = shaken(c, kept, random);
    expectations_[0].bound = std::max(expectations_[0].bound, furthest(of.reference(near), expectations_[0].values));
    for (size_t n = 0; n < x.size(); ++n) {
      Expectation& d = expectations_[n + 1];
      d.bound = std::max(d.bound, furthest(differences(of.reference, far, weights, n, d.at), d.values));
    }
  }
  for (size_t n = 0; n < expectations_.size(); ++n) {
    Expectation& e = expectations_[n];
    const DType stored = n == 0 ? c_.dtype() : inputs_[n - 1].dtype();
    e.bound += 2 * unit_in_last_place(stored, largest(e.values));
  }
}

OpOutputs JudgedOp::run(bool strided) const {
  std::vector<Tensor> x;
  for (const Tensor& each : inputs_) x.push_back(strided ? spread_out(each) : each);
  return run_with(std::move(x), c_);
}

OpOutputs JudgedOp::run_on(Device device) const {
  std::vector<Tensor> x;
  for (const Tensor& each : inputs_) x.push_back(each.to(device));
  OpOutputs out = run_with(std::move(x), c_.to(device));
  out.y = out.y.to(Device{});
  for (Tensor& each : out.gradients) each = each.to(Device{});
  return out;
}

OpOutputs JudgedOp::run_with(std::vector<Tensor> x, const Tensor& c) const {
  Tape tape;
  for (Tensor& each : x) each = parameter(each);
  OpOutputs out;
  const Tensor y = op_(x);
  out.y = y.detach();
  Gradients sums;
  tape.backward({y}, {c}, sums);
  for (const Tensor& each : x) out.gradients.push_back(sums.find(each));
  return out;
}

std::vector<std::string> JudgedOp::judge(const OpOutputs& got) const {
  std::vector<std::string> failures = doubts_;
  for (size_t n = 0; n < expectations_.size(); ++n) {
    const Expectation& e = expectations_[n];
    const Tensor& tensor = n == 0 ? got.y : got.gradients[n - 1];
    if (!tensor && largest(e.values) <= e.bound) continue;
    const Tensor& like = n == 0 ? c_ : inputs_[n - 1];
    if (!tensor || !(tensor.shape() == like.shape()) || tensor.dtype() != like.dtype()) {
      failures.push_back(fmt::format("{}: did not come back in the shape and type of its tensor", e.name));
      continue;
    }
    const Numbers all = values<double>(tensor);
    Numbers some;
    for (const int64_t at : e.at) some.push_back(all[static_cast<size_t>(at)]);
    const double error = furthest(some, e.values);
    if (error > e.bound)
      failures.push_back(fmt::format("{}: error {:.3g} over the bound {:.3g} (largest {:.3g})", e.name, error, e.bound,
                                     largest(e.values)));
  }
  return failures;
}

std::vector<std::string> differing(const OpOutputs& a, const OpOutputs& b) {
  std::vector<std::string> names;
  if (!same_bits(a.y, b.y)) names.emplace_back("y");
  for (size_t n = 0; n < a.gradients.size(); ++n) {
    if (!a.gradients[n] && !b.gradients[n]) continue;
    if (!a.gradients[n] || !b.gradients[n] || !same_bits(a.gradients[n], b.gradients[n]))
      names.push_back(fmt::format("gradient {}", n));
  }
  return names;
}

namespace {

// Bits of one run against those with one thread; what is thrown is a failure too.
void compare(const OpOutputs& alone, const std::function<OpOutputs()>& run, const std::string& how,
             std::vector<std::string>& failures) {
  try {
    for (const std::string& name : differing(alone, run()))
      failures.push_back(fmt::format("{}: its bits differ {}", name, how));
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    failures.push_back(fmt::format("threw {}: {}", how, error.what()));
  }
}

}  // namespace

std::vector<std::vector<std::string>> examine(const std::vector<JudgedOp>& judged) {
  const int before = threads();
  std::vector<std::vector<std::string>> failures(judged.size());
  std::vector<OpOutputs> alone(judged.size());
  set_threads(1);
  for (size_t n = 0; n < judged.size(); ++n) {
    try {
      alone[n] = judged[n].run();
      failures[n] = judged[n].judge(alone[n]);
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& error) {
      failures[n].push_back(fmt::format("threw: {}", error.what()));
      continue;
    }
    compare(
        alone[n], [&] { return judged[n].run(true); }, "for strided inputs", failures[n]);
  }
  for (const int count : {2, 3, 7}) {
    set_threads(count);
    for (size_t n = 0; n < judged.size(); ++n) {
      if (alone[n].y)
        compare(
            alone[n], [&] { return judged[n].run(); }, fmt::format("with {} threads", count), failures[n]);
    }
  }
  set_threads(before);
  return failures;
}

std::vector<JudgedOp> judged_ops(const std::vector<OpCase>& cases) {
  std::vector<JudgedOp> judged;
  for (const OpCase& each : cases) {
    for (const DType type : each.types) judged.emplace_back(each, type);
  }
  return judged;
}

std::vector<std::vector<OpCase>> op_families() {
  return {norm_cases(),        softmax_cases(), embedding_cases(), dropout_cases(),  activation_cases(),
          elementwise_cases(), shape_cases(),   rope_cases(),      recurrent_cases()};
}

}  // namespace mh
