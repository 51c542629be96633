// No gradient is lost in silence: every op of the public headers either gives the gradient of each of its inputs, equal
// to differences of its own values, or refuses with a sentence. An op that is not walked here fails the test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/harness/refusal.h"
#include "tests/ops/declared_ops.h"
#include "tests/ops/walked_ops.h"

namespace mh {
namespace {

// What a declaration can be that there is no gradient of: it takes no tensor, or makes a mask or a text of some.
bool has_gradients(const DeclaredOp& op) {
  static const std::set<std::string> plain{"int64_t", "int", "string_view"};
  if (op.result == "Mask" || op.result == "Explanation") return false;
  return !std::all_of(op.parameters.begin(), op.parameters.end(), [](auto& type) { return plain.contains(type); });
}

// Σ c · y over everything the op gives, in double.
double weighed(const WalkedOp& op, const std::vector<Tensor>& inputs) {
  const NoTape closed;
  double sum = 0;
  uint64_t seed = 100;
  for (const Tensor& y : op.call(inputs)) {
    const Tensor c = randn(y.shape(), ++seed), values = y.to(DType::f32).contiguous();
    for (int64_t i = 0; i < y.count(); ++i) sum += static_cast<double>(c.data<float>()[i] * values.data<float>()[i]);
  }
  return sum;
}

// Central differences by steps of 1/256: their own error is of the third derivative, and of the roundings of f32 in the
// sum; both lie far below a tenth of a percent of the largest.
double slope(const WalkedOp& op, const std::vector<Tensor>& inputs, size_t which, int64_t element) {
  constexpr float kStep = 1.0F / 256;
  const auto moved = [&](float by) {
    std::vector<Tensor> in = inputs;
    in[which] = in[which].detach().clone();
    in[which].data<float>()[element] += by;
    return weighed(op, in);
  };
  return (moved(kStep) - moved(-kStep)) / (2 * static_cast<double>(kStep));
}

void expect_recorded(const WalkedOp& op, const std::vector<Tensor>& inputs, size_t which) {
  Tape tape;
  const std::vector<Tensor> ys = op.call(inputs);
  Grads dys;
  uint64_t seed = 100;
  for (const Tensor& y : ys) {
    ASSERT_NE(y.trace(), 0u) << op.signature << " loses the gradient of input " << which;
    dys.push_back(randn(y.shape(), ++seed).to(y.dtype()));
  }
  Gradients sums;
  tape.backward(ys, dys, sums);
  const Tensor g = sums.find(inputs[which]);
  ASSERT_TRUE(g) << op.signature << " gives input " << which << " no gradient";
  ASSERT_EQ(g.shape(), inputs[which].shape()) << op.signature;
  const Tensor values = g.to(DType::f32).contiguous();
  double largest = 0;
  for (int64_t i = 0; i < values.count(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(values.data<float>()[i])));
  EXPECT_GT(largest, 0) << op.signature << " gives input " << which << " a gradient of zeros";
  for (int64_t i = 0; i < values.count(); i += std::max<int64_t>(1, values.count() / 4))
    EXPECT_NEAR(static_cast<double>(values.data<float>()[i]), slope(op, inputs, which, i), 2e-3 * (largest + 1))
        << op.signature << ", element " << i << " of input " << which;
}

void expect_refused(const WalkedOp& op, const std::vector<Tensor>& inputs, size_t which) {
  const std::string name = op.signature.substr(0, op.signature.find('('));
  size_t results = 0;
  EXPECT_EQ(refusal_of([&] { results = op.call(inputs).size(); }).sentence, "no refusal") << op.signature;
  for (size_t n = 0; n < std::max<size_t>(1, results); ++n) {
    const Refusal said = refusal_of([&] {
      Tape tape;
      const std::vector<Tensor> ys = op.call(inputs);
      if (ys.empty()) return;
      Gradients sums;
      tape.backward({ys[n]}, {full(ys[n].shape(), 1, ys[n].dtype())}, sums);
    });
    EXPECT_EQ(said.kind, ErrorKind::unsupported) << op.signature << ", input " << which << ", result " << n;
    EXPECT_TRUE(said.sentence.starts_with(name) && said.says("detach"))
        << op.signature << ", input " << which << ", result " << n << ": " << said.sentence;
  }
}

TEST(EveryOp, RecordsOrRefuses) {
  for (const WalkedOp& op : walked_ops()) {
    for (size_t which = 0; which < op.inputs.size(); ++which) {
      std::vector<Tensor> inputs = op.inputs;
      inputs[which] = parameter(inputs[which].clone());
      if (op.records)
        expect_recorded(op, inputs, which);
      else
        expect_refused(op, inputs, which);
    }
  }
}

TEST(EveryOp, IsWalked) {
  std::set<std::string> declared, walked;
  for (const DeclaredOp& op : declared_ops()) {
    if (has_gradients(op)) declared.insert(op.signature());
  }
  for (const WalkedOp& op : walked_ops()) walked.insert(op.signature);
  EXPECT_EQ(declared, walked) << "tests/ops/walked_ops.cpp lists the ops of the public headers";
  EXPECT_GT(declared.size(), 50u);
}

TEST(EveryOp, IsFoundInItsHeader) {
  const std::vector<DeclaredOp> found = declared_in(R"(
    #include <x>
    namespace mh {
    enum class Kind { a, b };  // not f(x)
    struct Options { int a = g(1); Tensor t{}; };
    class C { public: Tensor member(const Tensor& x); friend Tensor near(int a); };
    using F = void (*)(int);
    Tensor one(const Tensor& x, const std::vector<int32_t>& rows = {}, const Options& options = {1, 2});
    inline Tensor two(const Tensor& x) { return one(x); }
    std::vector<Tensor> three(
        const Tensor& x, int axis);
    int four();
    }  // namespace mh)");
  std::vector<std::string> signatures;
  for (const DeclaredOp& each : found) signatures.push_back(each.result + " " + each.signature());
  EXPECT_EQ(signatures,
            (std::vector<std::string>{"Tensor one(Tensor, vector<int32_t>, Options)", "inline Tensor two(Tensor)",
                                      "std::vector<Tensor> three(Tensor, int)", "int four()"}));
}

}  // namespace
}  // namespace mh
