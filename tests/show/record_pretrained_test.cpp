// What is recorded of a pretrained model is the attention that it gives itself, for every family that reads text.
#include "multihead/show/record_pretrained.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "multihead/show/page.h"
#include "tests/harness/refusal.h"
#include "tests/models/golden_folder.h"

namespace mh {
namespace {

using test::GoldenFolder;

std::string folder_of(const std::string& name) { return std::string(MH_TEST_DATA) + "/models/golden/families/" + name; }

// As many tokens as the models have.
Tokenizer small_tokenizer() {
  std::string words = R"({"<u>":0,"a":1,"b":2,"c":3,"the":4,"dog":5,"sees":6,"it":7)";
  for (int id = 8; id < 64; ++id) words += fmt::format(R"(,"w{}":{})", id, id);
  return Tokenizer::parse(R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
    "pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,
    "model":{"type":"WordLevel","vocab":)" +
                              words + R"(},"unk_token":"<u>"}})",
                          "small.json");
}

TEST(RecordPretrained, WeightsAreTheModelsOwnInEveryFamily) {
  const Tokenizer tokenizer = small_tokenizer();
  int64_t tried = 0;
  for (const std::string& name : GoldenFolder::names()) {
    SCOPED_TRACE(name);
    const Pretrained model = Pretrained::load(folder_of(name));
    const Architecture& architecture = model.architecture();
    if (architecture.patches || architecture.cross_attention) continue;
    ++tried;
    const Recording recording = record(model, tokenizer, "the dog sees it");
    EXPECT_EQ(recording.texts[0].tokens, (std::vector<std::string>{"the", "dog", "sees", "it"}));
    EXPECT_EQ(recording.texts[0].words, (std::vector<int64_t>{0, 1, 2, 3}));
    const ModelOutputs outputs =
        model.forward({.tokens = token_batch({tokenizer.encode_input("the dog sees it").ids}), .attentions = true});
    const std::vector<Tensor>& own = outputs.layers.at("attentions");
    ASSERT_EQ(recording.layers.size(), own.size());
    for (size_t n = 0; n < own.size(); ++n) {
      const Tensor weights = recording.layers[n].weights();
      for (int64_t h = 0; h < weights.size(0); ++h)
        for (int64_t i = 0; i < 4; ++i)
          for (int64_t j = 0; j < 4; ++j) EXPECT_NEAR(weights.item({h, i, j}), own[n].item({0, h, i, j}), 1e-6);
    }
    EXPECT_GT(page_html(page_of(recording, name, "")).size(), 10'000u);
  }
  EXPECT_GT(tried, 3);
}

TEST(RecordPretrained, EncoderAndDecoderAreRecordedWithWhatWasWritten) {
  const Tokenizer tokenizer = small_tokenizer();
  for (const std::string& name : GoldenFolder::names()) {
    const Pretrained model = Pretrained::load(folder_of(name));
    if (!model.architecture().cross_attention || model.architecture().patches) continue;
    SCOPED_TRACE(name);
    const Recording recording = record(model, tokenizer, "the dog sees it", "it sees");
    ASSERT_EQ(recording.texts.size(), 3u);
    EXPECT_EQ(recording.texts[1].tokens.size(), 3u);
    EXPECT_EQ(recording.texts[2].tokens.size(), 3u);
    for (const RecordedLayer* layer : recording.of(AttentionKind::cross)) {
      EXPECT_EQ(layer->queries(), 3);
      EXPECT_EQ(layer->keys(), 4);
    }
    EXPECT_FALSE(recording.of(AttentionKind::encoder).empty() || recording.of(AttentionKind::decoder).empty());
  }
}

TEST(RecordPretrained, TextWithoutTokensIsRefused) {
  const Pretrained model = Pretrained::load(folder_of("bert_body"));
  EXPECT_TRUE(refusal_of([&] { record(model, small_tokenizer(), ""); }).says("the text has no token"));
  EXPECT_FALSE(is_pretrained("/nowhere"));
  EXPECT_TRUE(is_pretrained(folder_of("bert_body")));
}

}  // namespace
}  // namespace mh
