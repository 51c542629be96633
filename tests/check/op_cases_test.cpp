// Every case of every op on every rung: value, gradient, bits for any number of threads and layout; and that the judge
// can find fault.
#include <gtest/gtest.h>

#include "multihead/check/op_case.h"
#include "multihead/check/verdict.h"
#include "multihead/ops/elementwise.h"
#include "tests/harness/rungs.h"

namespace mh {
namespace {

void examine_all(std::vector<OpCase> cases) {
  if (harness::kLooksForRaces) {
    for (OpCase& each : cases) each.types.resize(1);  // in each the work is cut alike
  }
  const std::vector<JudgedOp> judged = judged_ops(cases);
  ASSERT_FALSE(judged.empty()) << "there is nothing to examine";
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    const auto found = examine(judged);
    std::vector<std::string> failures;
    for (size_t n = 0; n < judged.size(); ++n) {
      for (const std::string& each : found[n]) failures.push_back(judged[n].label + ": " + each);
    }
    EXPECT_TRUE(failures.empty()) << failures.size() << " failures on " << step.name << ":"
                                  << harness::listed(failures);
  }
}

TEST(OpCases, Norms) { examine_all(norm_cases()); }
TEST(OpCases, Softmax) { examine_all(softmax_cases()); }
TEST(OpCases, Embedding) { examine_all(embedding_cases()); }
TEST(OpCases, Dropout) { examine_all(dropout_cases()); }
TEST(OpCases, Activations) { examine_all(activation_cases()); }
TEST(OpCases, Elementwise) { examine_all(elementwise_cases()); }
TEST(OpCases, Shapes) { examine_all(shape_cases()); }
TEST(OpCases, Rope) { examine_all(rope_cases()); }

// The verdict on an op that is not what its reference says.
std::vector<std::string> verdict(const std::function<Tensor(const Tensor&)>& op) {
  const OpCase planted{.label = "planted",
                       .inputs = {{Shape{3, 5}, 2, 0.3}},
                       .op = [op](auto& x) { return op(x[0]); },
                       .reference =
                           [](auto& x) {
                             Numbers y;
                             for (const double each : x[0]) y.push_back(each * each);
                             return y;
                           }};
  return examine({JudgedOp(planted, DType::f32)})[0];
}

TEST(OpCases, AWrongValueOrGradientIsFound) {
  EXPECT_TRUE(verdict([](const Tensor& x) { return square(x); }).empty());
  EXPECT_TRUE(verdict([](const Tensor& x) { return mul(x, x); }).empty());
  EXPECT_EQ(verdict([](const Tensor& x) { return scale(square(x), 1 + 1e-6f); }).size(), 2u) << "value and gradient";
  EXPECT_EQ(verdict([](const Tensor& x) { return mul(x, x.detach()); }).size(), 1u)
      << "half of the gradient is missing";
  EXPECT_EQ(verdict([](const Tensor& x) { return square(x.detach()); }).size(), 1u) << "the gradient never came";
}

TEST(Hash, FollowsTheBitsInOrder) {
  const Tensor x = tensor<float>({1, 2, 3}, {3}), y = tensor<float>({1, 3, 2}, {3});
  EXPECT_EQ(hash_of(x, 0), hash_of(x.clone(), 0));
  EXPECT_NE(hash_of(x, 0), hash_of(y, 0));
  EXPECT_NE(hash_of(x, 0), hash_of(x, 1));
  EXPECT_NE(hash_of(y, hash_of(x, 0)), hash_of(x, hash_of(y, 0)));
  EXPECT_EQ(hash_of(zeros({0}), 7), 7u) << "nothing changes nothing";
  // FNV-1a of the byte 'a', from the algorithm's authors' table of test vectors.
  EXPECT_EQ(hash_of(tensor<int8_t>({'a'}, {1}), 0), 0xaf63dc4c8601ec8cu);
}

}  // namespace
}  // namespace mh
