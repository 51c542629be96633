// Several maps as one product: the same numbers packed or not, and gradients.
#include "multihead/nn/linear_group.h"

#include "multihead/ops/rows/reduce.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

using test::error_against;

struct Maps {
  Maps() : at(store), group({Linear(at / "a", 5, 3), Linear(at / "b", 5, 7, false), Linear(at / "c", 5, 2)}) {
    for (const auto& param : store.all()) {
      if (param->name.ends_with("bias")) param->value.detach().copy_from(randn(param->value.shape(), 3));
    }
  }
  ParamStore store;
  Params at;
  LinearGroup group;
};

TEST(LinearGroup, PackedMapsGiveWhatEachGivesAlone) {
  for (const DType type : {DType::f32, DType::bf16}) {
    Maps maps;
    const Tensor x = randn({4, 5}, 1).to(type);
    const std::vector<Tensor> apart = maps.group(x);
    const Tensor joined = maps.group.joined(x);
    maps.group.pack(type);
    const std::vector<Tensor> packed = maps.group(x);
    ASSERT_EQ(packed.size(), 3u);
    for (size_t n = 0; n < 3; ++n) {
      EXPECT_LT(error_against(packed[n], maps.group[n](x).to(DType::f32)), 1e-6);
      EXPECT_LT(error_against(packed[n], apart[n].to(DType::f32)), 1e-6);
    }
    EXPECT_LT(error_against(maps.group.joined(x), joined.to(DType::f32)), 1e-6);
  }
}

TEST(LinearGroup, PackedMapsStillGiveGradients) {
  Maps maps;
  maps.group.pack(DType::f32);
  const Tensor x = randn({4, 5}, 1);
  Tape tape;
  const Gradients gradients = tape.backward(sum(maps.group.joined(x)));
  for (const auto& param : maps.store.all()) {
    const bool bias = param->name.ends_with("bias");
    const Tensor expected = bias ? full(param->value.shape(), 4)
                                 : sum(x, {.axes = {0}, .keep = true}).broadcast_to(param->value.shape()).contiguous();
    EXPECT_LT(error_against(gradients.of(param->value), expected), 1e-6) << param->name;
  }
}

}  // namespace
}  // namespace mh
