// Our Transformer as Pegasus and Marian: the folder that is written gives the same logits and the same ids.
#include "multihead/models/convert/to_huggingface.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "multihead/models/config_json.h"
#include "multihead/models/model_file.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

const std::string kShipped = MH_TEST_DATA "/../models/en-de";

// N(0, 0.3), norms about 1: a missing scale, bias or permutation shows.
Transformer random_model(const TransformerConfig& config) {
  Transformer model(config, std::make_shared<ParamStore>());
  std::map<std::string, Tensor> values = model.params().values();
  uint64_t seed = 1;
  for (auto& [name, value] : values) {
    const bool norm = name.find("norm") != name.npos && name.ends_with("weight");
    const Tensor drawn = randn(value.shape(), seed++);
    float* data = drawn.data<float>();
    for (int64_t n = 0; n < drawn.count(); ++n) data[n] = norm ? 1 + 0.2F * data[n] : 0.3F * data[n];
    value = drawn;
  }
  model.params().take(values);
  return model;
}

std::vector<int32_t> random_ids(size_t count, int64_t vocabulary, uint64_t seed) {
  const Tensor drawn = randn({static_cast<int64_t>(count)}, seed);
  std::vector<int32_t> out;
  for (size_t n = 0; n < count; ++n)
    out.push_back(static_cast<int32_t>(std::abs(static_cast<int64_t>(drawn.data<float>()[n] * 1e6F)) % vocabulary));
  return out;
}

struct Pairs {
  TokenBatch source, target;
};
Pairs random_pairs(int64_t vocabulary) {
  std::vector<std::vector<int32_t>> sources, targets;
  for (size_t n = 0; n < 3; ++n) {
    sources.push_back(random_ids(5 + 7 * n, vocabulary, 10 + n));
    targets.push_back(random_ids(9 - 4 * n, vocabulary, 20 + n));
  }
  return {token_batch(sources), token_batch(targets)};
}

// max |a - b| / max |a|
double difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double largest = 0, apart = 0;
  for (int64_t n = 0; n < a.count(); ++n) {
    largest = std::max(largest, std::abs(static_cast<double>(a.data<float>()[n])));
    apart = std::max(apart, std::abs(static_cast<double>(a.data<float>()[n]) - b.data<float>()[n]));
  }
  return apart / largest;
}

double folder_differs(const Transformer& model, const std::string& folder) {
  const Pretrained theirs = Pretrained::load(folder);
  const Pairs pairs = random_pairs(model.config().vocabulary);
  Pass pass = Pass::inference();
  const Tensor logits = model.logits(model.decode(pairs.target, model.encode(pairs.source, pass), pass));
  return difference(logits.contiguous(),
                    theirs.forward({.tokens = pairs.source, .decoder = pairs.target})["logits"].contiguous());
}

TransformerConfig tiny(NormPlace norm, Middle middle = Middle::relu) {
  return {.vocabulary = 37,
          .width = 12,
          .heads = 3,
          .feed_forward = 10,
          .encoder_layers = 2,
          .decoder_layers = 3,
          .norm = norm,
          .middle = middle,
          .max_length = 40};
}

TEST(ToHuggingFace, NormsBeforeBecomePegasus) {
  for (const Middle middle : {Middle::relu, Middle::gelu, Middle::gelu_tanh}) {
    const TemporaryFolder folder;
    const Transformer model = random_model(tiny(NormPlace::before, middle));
    to_huggingface(model).save(folder.path());
    EXPECT_LE(folder_differs(model, folder.path()), 1e-5);
    EXPECT_EQ(Pretrained::load(folder.path()).architecture().model_class, "PegasusForConditionalGeneration");
  }
}

TEST(ToHuggingFace, NormsAfterBecomeMarianWithALayerMoreForTheLastNorm) {
  for (const int64_t encoder_layers : {0, 2}) {
    const TemporaryFolder folder;
    TransformerConfig config = tiny(NormPlace::after, Middle::gelu);
    config.encoder_layers = encoder_layers;
    const Transformer model = random_model(config);
    to_huggingface(model).save(folder.path());
    EXPECT_LE(folder_differs(model, folder.path()), 2e-6);  // taken for k = 1: 1.2e-5
    const Pretrained marian = Pretrained::load(folder.path());
    EXPECT_EQ(marian.architecture().model_class, "MarianMTModel");
    EXPECT_EQ(marian.architecture().encoder->layers, encoder_layers + 1);
    EXPECT_EQ(marian.architecture().decoder->layers, 4);
    EXPECT_TRUE(marian.unused().empty());
  }
}

TEST(ToHuggingFace, TheShippedModelGivesTheSameLogitsAndIds) {
  const TemporaryFolder folder;
  write_as_huggingface(kShipped, folder.path());
  const ModelFolder ours = load_model_folder(kShipped);
  EXPECT_LE(folder_differs(ours.model, folder.path()), 1e-5);

  const Tokenizer theirs = Tokenizer::load(folder.path());
  for (const char* text : {"How are you?", "", "It costs $ 12.50, naïve friend.", "  two  spaces "}) {
    std::vector<int32_t> ids = ours.tokenizer.encode(text);
    ids.push_back(ours.model.config().end);
    EXPECT_EQ(theirs.encode_input(text).ids, ids) << text;
    EXPECT_EQ(theirs.decode(ids), ours.tokenizer.decode(ids)) << text;
  }
  const auto config = nlohmann::json::parse(text_of(folder / "config.json"));
  EXPECT_EQ(config["scale_embedding"], true);
  EXPECT_EQ(config["decoder_start_token_id"], 1);
  EXPECT_EQ(config["dtype"], "float32");
  EXPECT_TRUE(config["forced_eos_token_id"].is_null());
  EXPECT_EQ(nlohmann::json::parse(text_of(folder / "tokenizer_config.json"))["tokenizer_class"],
            "PreTrainedTokenizerFast");
  EXPECT_EQ(nlohmann::json::parse(text_of(folder / "generation_config.json"))["early_stopping"], "never");
  // Matrices stay in the type of the source, f16; a permutation changes no bit.
  const NamedTensors file = read_safetensors(folder / "model.safetensors").tensors;
  EXPECT_EQ(file.at("model.shared.weight").dtype(), DType::f16);
  EXPECT_EQ(file.at("model.encoder.layer_norm.weight").dtype(), DType::f32);
  EXPECT_EQ(file.at("final_logits_bias").shape(), (Shape{1, 8000}));
}

TEST(ToHuggingFace, WhatCannotBeExpressedIsRefusedByName) {
  const auto refused = [](auto change) {
    TransformerConfig config = tiny(NormPlace::before);
    change(config);
    return refusal_of([&] { to_huggingface(random_model(config)); });
  };
  using Config = TransformerConfig;
  EXPECT_TRUE(refused([](Config& c) { c.positions = ModelPositions::rotary; }).says("has rotary positions"));
  EXPECT_TRUE(refused([](Config& c) { c.positions = ModelPositions::alibi; }).says("ALiBi's positions"));
  EXPECT_TRUE(refused([](Config& c) { c.positions = ModelPositions::t5; }).says("T5's positions"));
  EXPECT_TRUE(refused([](Config& c) { c.positions = ModelPositions::learned; }).says("learned positions"));
  EXPECT_TRUE(refused([](Config& c) { c.middle = Middle::swiglu; }).says("a gated feed-forward"));
  EXPECT_TRUE(refused([](Config& c) { c.tied = false; }).says("tables of its own"));
  EXPECT_TRUE(refused([](Config& c) { c.width = 9; }).says("an odd width"));
  EXPECT_TRUE(refused([](Config& c) { c.encoder_layers = 0; }).says("no encoder layer"));
  EXPECT_EQ(refused([](Config& c) { c.tied = false; }).kind, ErrorKind::unsupported);
}

}  // namespace
}  // namespace mh
