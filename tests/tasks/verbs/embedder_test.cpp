// Vectors of texts against formulas over the model's own rows, for every module that a folder may name.
#include "multihead/tasks/verbs/embedder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/io/safetensors.h"
#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/verbs/nearest_vectors.h"
#include "multihead/text/tokenizer.h"
#include "tests/harness/refusal.h"
#include "tests/models/encoder_folder.h"

namespace mh {
namespace {

class Embedding : public testing::Test {
 protected:
  Embedding() { test::put_encoder(folder_.path(), "bert_body"); }
  // The model's rows of one text, row by row.
  std::vector<std::vector<double>> rows_of(const std::string& text) const {
    const Encoded encoded = Tokenizer::load(folder_.path()).encode_input(text);
    const Tensor rows =
        Pretrained::load(folder_.path()).forward({.tokens = token_batch({encoded.ids})})["last_hidden_state"];
    std::vector<std::vector<double>> out;
    for (int64_t n = 0; n < rows.size(0); ++n) {
      out.emplace_back();
      for (int64_t c = 0; c < rows.size(1); ++c) out.back().push_back(rows.item({n, c}));
    }
    return out;
  }
  void put_modules(const std::string& pooling, const std::string& more = "") const {
    std::filesystem::create_directories(folder_ / "1_Pooling");
    put_text(
        folder_ / "modules.json",
        R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},)"
        R"({"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.sentence_transformer.modules.pooling.Pooling"})" +
            more + "]");
    put_text(folder_ / "1_Pooling/config.json", pooling);
  }
  static void expect_near(const Tensor& vector, const std::vector<double>& expected) {
    ASSERT_EQ(vector.count(), static_cast<int64_t>(expected.size()));
    for (int64_t c = 0; c < vector.count(); ++c)
      EXPECT_NEAR(vector.item({c}), expected[static_cast<size_t>(c)], 2e-6) << c;
  }
  std::string refused() const {
    return refusal_of([&] { Embedder::load(folder_.path()); }).sentence;
  }
  TemporaryFolder folder_;
};

constexpr const char* kText = "the cat sat";

std::vector<double> weighted(const std::vector<std::vector<double>>& rows, size_t begin, bool by_place, double power) {
  std::vector<double> out(rows[0].size());
  double all = 0;
  for (size_t n = begin; n < rows.size(); ++n) all += by_place ? static_cast<double>(n + 1) : 1;
  for (size_t n = begin; n < rows.size(); ++n)
    for (size_t c = 0; c < out.size(); ++c)
      out[c] += (by_place ? static_cast<double>(n + 1) : 1) * rows[n][c] / std::pow(all, power);
  return out;
}

TEST_F(Embedding, APlainEncoderGivesTheMeanOfItsRows) {
  const Embedder embedder = Embedder::load(folder_.path());
  EXPECT_TRUE(embedder.is_plain());
  EXPECT_EQ(embedder.width(), 8);
  expect_near(embedder(kText), weighted(rows_of(kText), 0, false, 1));
}

TEST_F(Embedding, AVectorHasTheSameBitsAloneAndAmongOthers) {
  const Embedder embedder = Embedder::load(folder_.path());
  const std::vector<std::string> texts{"the cat sat on the mat", "", "a", "ada sings in rome . who ? the dog sat",
                                       "dog"};
  const Embeddings together = embedder(texts);
  EXPECT_EQ(together.cut, std::vector<size_t>{3});  // 12 tokens, and 11 positions
  for (size_t n = 0; n < texts.size(); ++n) {
    const Tensor alone = embedder(texts[n]);
    for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(alone.item({c}), together.vectors.item({static_cast<int64_t>(n), c}));
  }
  EXPECT_EQ(embedder(std::vector<std::string>{}).vectors.size(0), 0);
}

TEST_F(Embedding, PoolingsOfBothFormsAreJoined) {
  const auto rows = rows_of(kText);
  put_modules(R"({"pooling_mode":"lasttoken"})");
  expect_near(Embedder::load(folder_.path())(kText), rows.back());
  put_modules(R"({"pooling_mode":["mean_sqrt_len_tokens","weightedmean"]})");
  std::vector<double> both = weighted(rows, 0, false, 0.5);
  const auto second = weighted(rows, 0, true, 1);
  both.insert(both.end(), second.begin(), second.end());
  expect_near(Embedder::load(folder_.path())(kText), both);
  put_modules(R"({"pooling_mode_cls_token":true,"pooling_mode_max_tokens":true,"pooling_mode_mean_tokens":false})");
  both = rows[0];
  for (size_t c = 0; c < rows[0].size(); ++c) {
    both.push_back(rows[0][c]);
    for (const auto& row : rows) both.back() = std::max(both.back(), row[c]);
  }
  expect_near(Embedder::load(folder_.path())(kText), both);
}

TEST_F(Embedding, DenseLayersAndLengthsFollow) {
  std::filesystem::create_directories(folder_ / "2_Dense");
  put_text(
      folder_ / "2_Dense/config.json",
      R"({"in_features":8,"out_features":3,"bias":true,"activation_function":"torch.nn.modules.activation.Tanh"})");
  const Tensor weight = randn({3, 8}, 7), bias = randn({3}, 8);
  write_safetensors(folder_ / "2_Dense/model.safetensors",
                    {.tensors = {{"linear.weight", weight}, {"linear.bias", bias}}, .metadata = {}});
  put_modules(R"({"pooling_mode":"mean"})",
              R"(,{"idx":2,"name":"2","path":"2_Dense","type":"sentence_transformers.base.modules.dense.Dense"},)"
              R"({"idx":3,"name":"3","path":"3_Normalize","type":"sentence_transformers.models.Normalize"})");
  const auto mean = weighted(rows_of(kText), 0, false, 1);
  std::vector<double> expected;
  double squares = 0;
  for (int64_t n = 0; n < 3; ++n) {
    double sum = bias.item({n});
    for (int64_t c = 0; c < 8; ++c) sum += weight.item({n, c}) * mean[static_cast<size_t>(c)];
    expected.push_back(std::tanh(sum));
    squares += expected.back() * expected.back();
  }
  for (double& x : expected) x /= std::sqrt(squares);
  const Embedder embedder = Embedder::load(folder_.path());
  EXPECT_EQ(embedder.width(), 3);
  expect_near(embedder(kText), expected);
}

TEST_F(Embedding, PromptsStandBeforeTheTextAndMayBeLeftOutOfTheMean) {
  put_modules(R"({"pooling_mode":"mean","include_prompt":false})");
  put_text(folder_ / "config_sentence_transformers.json",
           R"({"prompts":{"query":"who sings ? "},"default_prompt_name":"query","similarity_fn_name":"dot"})");
  const Embedder embedder = Embedder::load(folder_.path());
  EXPECT_EQ(embedder.similarity(), "dot");
  expect_near(embedder(kText), weighted(rows_of("who sings ? the cat sat"), 4, false, 1));  // [CLS] who sings ?
  const std::vector<std::string> one{kText};
  expect_near(embedder(one, "").vectors.reshape({8}), weighted(rows_of(kText), 0, false, 1));
}

TEST_F(Embedding, TheShortestLimitCuts) {
  put_modules(R"({"pooling_mode":"mean"})");
  put_text(folder_ / "sentence_bert_config.json", R"({"max_seq_length":4,"do_lower_case":true})");
  EXPECT_EQ(Embedder::load(folder_.path()).max_length(), 4);
  put_text(folder_ / "tokenizer_config.json", R"({"model_max_length":3})");
  EXPECT_EQ(Embedder::load(folder_.path()).max_length(), 3);
  expect_near(Embedder::load(folder_.path())("the cat"), weighted(rows_of("the"), 0, false, 1));
}

TEST_F(Embedding, FoldersThatAskForSomethingElseAreRefused) {
  put_modules(R"({"pooling_mode":"attention"})");
  EXPECT_NE(refused().find("the pooling mode 'attention' is not known"), std::string::npos) << refused();
  put_modules(R"({"pooling_mode_cls_token":false})");
  EXPECT_NE(refused().find("names no pooling mode"), std::string::npos) << refused();
  put_modules(R"({"pooling_mode":"mean"})", R"(,{"path":"2_LSTM","type":"sentence_transformers.models.LSTM"})");
  EXPECT_NE(refused().find("module 2 is 'LSTM'"), std::string::npos) << refused();
  put_modules(R"({"pooling_mode":"mean"})", R"(,{"path":"../x","type":"sentence_transformers.models.Dense"})");
  EXPECT_NE(refused().find("leaves the folder"), std::string::npos) << refused();
  put_text(folder_ / "modules.json", "[");
  EXPECT_NE(refused().find("not valid JSON"), std::string::npos) << refused();
}

TEST(NearestVectors, AreThoseOfAllProductsInOrder) {
  const int64_t count = 40000, width = 5;
  const Tensor vectors = unit_rows(randn({count, width}, 3)), queries = randn({2, width}, 4);
  const auto found = nearest_vectors(vectors, queries, 7);
  for (int64_t q = 0; q < 2; ++q) {
    std::vector<std::pair<double, int64_t>> all;
    for (int64_t n = 0; n < count; ++n) {
      double sum = 0;
      for (int64_t c = 0; c < width; ++c)
        sum += double{vectors.data<float>()[n * width + c]} * queries.data<float>()[q * width + c];
      all.emplace_back(-sum, n);
    }
    std::sort(all.begin(), all.end());
    ASSERT_EQ(found[static_cast<size_t>(q)].size(), 7U);
    for (size_t n = 0; n < 7; ++n) {
      EXPECT_EQ(found[static_cast<size_t>(q)][n].row, all[n].second);
      EXPECT_NEAR(found[static_cast<size_t>(q)][n].score, -all[n].first, 1e-5);
    }
  }
  EXPECT_EQ(nearest_vectors(full({3, 2}, 1), full({1, 2}, 1), 9)[0][1].row, 1);  // of equals the first rows
  EXPECT_EQ(nearest_vectors(zeros({0, 2}), full({1, 2}, 1), 9)[0].size(), 0U);
  EXPECT_TRUE(refusal_of([] { nearest_vectors(zeros({3, 2}), zeros({1, 3}), 1); }).says("expected k of 1 or more"));
}

}  // namespace
}  // namespace mh
