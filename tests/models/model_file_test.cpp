// A model that was saved computes what it computed; files that do not fit are refused.
#include "multihead/models/model_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/io/safetensors.h"
#include "tests/decode/tiny_model.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

Tensor logits_of(const Transformer& model) {
  Pass pass = Pass::inference();
  return model.logits(model.decode(token_batch({{1, 5, 6}}), model.encode(token_batch({{4, 3, 2}}), pass), pass));
}

TEST(ModelFile, ComputesWhatItComputed) {
  const TemporaryFolder folder;
  const Transformer model = test::tiny_model(11);
  const Tensor before = logits_of(model);
  for (const DType stored : {DType::f32, DType::bf16, DType::f16}) {
    save_transformer(folder / "model.safetensors", model, stored);
    const Tensor after = logits_of(load_transformer(folder / "model.safetensors"));
    ASSERT_EQ(after.shape(), before.shape());
    // A weight is off by at most 2^-9 of itself in bf16, 2^-12 in f16; the logits here are below 10.
    const double bound = stored == DType::f32 ? 0 : stored == DType::bf16 ? 0.3 : 0.04;
    for (int64_t n = 0; n < before.count(); ++n)
      EXPECT_NEAR(after.data<float>()[n], before.data<float>()[n], bound) << name(stored);
  }
}

TEST(ModelFile, RefusesWhatDoesNotFit) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  save_transformer(path, test::tiny_model(11));
  const Safetensors whole = read_safetensors(path);
  const auto refusal = [&](const auto& change) {
    Safetensors file = whole;
    change(file);
    write_safetensors(folder / "changed.safetensors", file);
    return refusal_of([&] { load_transformer(folder / "changed.safetensors"); });
  };
  EXPECT_TRUE(refusal([](Safetensors& file) { file.metadata.erase("config"); }).says("has no 'config'"));
  EXPECT_TRUE(refusal([](Safetensors& file) { file.metadata["config"] = std::string("{"); }).says("no JSON object"));
  EXPECT_TRUE(refusal([](Safetensors& file) { file.tensors.erase("decoder.norm.bias"); }).says("decoder.norm.bias"));
  EXPECT_TRUE(refusal([](Safetensors& file) { file.tensors["decoder.norm.bias"] = zeros({23}); }).says("[24]"));
  EXPECT_TRUE(refusal([](Safetensors& file) { file.tensors["more"] = zeros({2}); }).says("'more'"));
  EXPECT_EQ(refusal_of([&] { load_transformer(folder / "none.safetensors"); }).kind, ErrorKind::io);
}

}  // namespace
}  // namespace mh
