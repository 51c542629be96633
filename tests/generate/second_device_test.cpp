// Beam search and sampling with a model on a second device, whose memory nobody but its kernels may touch: the texts of
// the CPU.
#include <gtest/gtest.h>

#include "multihead/generate/search.h"
#include "multihead/tensor/named_tensors.h"
#include "tests/generate/tiny_model.h"
#include "tests/harness/host2.h"

namespace mh {
namespace {

constexpr int64_t kWords = 30;

Transformer on_host2(const Transformer& model, const NamedTensors& values) {
  harness::bring_host2();
  return Transformer(model.config(),
                     std::make_shared<ParamStore>(values, ParamStoreOptions{.device = harness::kHost2}));
}

void expect_same_texts(const std::vector<std::vector<Hypothesis>>& a, const std::vector<std::vector<Hypothesis>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t n = 0; n < a.size(); ++n) {
    ASSERT_EQ(a[n].size(), b[n].size()) << n;
    for (size_t i = 0; i < a[n].size(); ++i) {
      EXPECT_EQ(a[n][i].ids, b[n][i].ids) << n;
      EXPECT_EQ(a[n][i].score, b[n][i].score) << n;
    }
  }
}

TEST(SecondDevice, TranslatesAsTheCpuDoes) {
  Transformer here = test::tiny_model(kWords, 3);
  Transformer there = on_host2(here, here.params().values());
  const auto sources = test::random_sources(6, 9, kWords);
  for (const bool packed : {false, true}) {
    if (packed) here.pack(DType::f32), there.pack(DType::f32);
    for (const int beam : {1, 4}) {
      expect_same_texts(search(here, sources, {.beam = beam}), search(there, sources, {.beam = beam}));
    }
    expect_same_texts(sample(here, sources, {.seed = 3}), sample(there, sources, {.seed = 3}));
  }
}

}  // namespace
}  // namespace mh
