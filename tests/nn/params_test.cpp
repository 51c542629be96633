// Parameters by path: how fresh ones begin, and what a file must hold.
#include "multihead/nn/params.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/harness/refusal.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

using test::error_against;

TEST(Params, FreshOnesDependOnTheSeedAndTheirOwnNameAlone) {
  ParamStore one({.seed = 1}), two({.seed = 1}), other({.seed = 2});
  const Params at(two, "a");
  at.make("first", {3, 5}, Init::normal(1));
  const Tensor alone = one.make("a.b.weight", {40, 30}, Init::xavier()).value;
  const Tensor beside = (at / "b").make("weight", {40, 30}, Init::xavier()).value;
  EXPECT_EQ(error_against(alone, beside), 0);
  EXPECT_GT(error_against(alone, other.make("a.b.weight", {40, 30}, Init::xavier()).value), 0.1);
  EXPECT_GT(error_against(alone, one.make("a.c.weight", {40, 30}, Init::xavier()).value), 0.1);
}

TEST(Params, XavierFillsItsRangeAndNoMore) {
  ParamStore store;
  const Tensor w = store.make("w", {60, 90}, Init::xavier()).value;
  const auto [least, most] = std::minmax_element(w.data<float>(), w.data<float>() + w.count());
  const float bound = std::sqrt(6.0F / 150);
  EXPECT_LE(*most, bound);
  EXPECT_GE(*least, -bound);
  EXPECT_GT(*most, 0.99F * bound);
  EXPECT_LT(*least, -0.99F * bound);
}

TEST(Params, AFileGivesItsValuesAsF32AndTellsWhatNobodyAskedFor) {
  const Tensor half = randn({2, 3}, 1).to(DType::f16);
  ParamStore store({{"a.w", half}, {"b", zeros({1})}});
  const Param& w = (Params(store) / "a").make("w", {2, 3}, Init::zeros());
  EXPECT_EQ(w.value.dtype(), DType::f32);
  EXPECT_EQ(error_against(w.value, half.to(DType::f32)), 0);
  EXPECT_EQ(store.unused(), std::vector<std::string>{"b"});
  EXPECT_EQ(store.count(), 6);
}

TEST(Params, RefusesWhatTheFileLacksAndNamesThatAreTaken) {
  ParamStore store({{"a", zeros({2, 3})}, {"i", zeros({2}, DType::i32)}});
  const auto sentence = [&](const char* name, const Shape& shape) {
    return refusal_of([&] { store.make(name, shape, Init::zeros()); }).sentence;
  };
  EXPECT_EQ(sentence("b", {4}), "parameters: the file has no b; expected f32 [4]");
  EXPECT_EQ(sentence("a", {3, 2}), "parameters: a does not fit the model; expected [3, 2]; the file has [2, 3]");
  EXPECT_EQ(sentence("i", {2}), "parameters: i holds i32; expected floats");
  store.make("a", {2, 3}, Init::zeros());
  EXPECT_EQ(sentence("a", {2, 3}), "parameters: the name a is taken; expected each name once");
}

TEST(Params, MatricesHaveACopyForBf16ThatFollowsThem) {
  ParamStore store({.compute = DType::bf16});
  const Param& w = store.make("w", {2, 2}, Init::zeros());
  EXPECT_FALSE(store.make("bias", {2}, Init::zeros()).copy);
  store.take({{"w", full({2, 2}, 3)}, {"bias", zeros({2})}});
  EXPECT_EQ(w.copy.dtype(), DType::bf16);
  EXPECT_EQ(w.copy.item({1, 1}), 3);
  EXPECT_TRUE(refusal_of([&] { store.take({{"w", full({2, 2}, 4)}}); }).says("no fitting value for bias"));
  EXPECT_EQ(w.value.item({0, 0}), 3);
}

}  // namespace
}  // namespace mh
