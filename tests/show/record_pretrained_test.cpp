// What is recorded of a pretrained model is the attention that it gives itself, for every family that reads text.
#include "multihead/show/record_pretrained.h"

#include <gtest/gtest.h>

#include "multihead/show/page.h"
#include "tests/harness/refusal.h"
#include "tests/models/golden_folder.h"
#include "tests/show/small_tokenizer.h"

namespace mh {
namespace {

using test::GoldenFolder;

std::string folder_of(const std::string& name) { return std::string(MH_TEST_DATA) + "/models/golden/families/" + name; }

Tokenizer small_tokenizer() { return Tokenizer::parse(test::small_tokenizer_json(), "small.json"); }

TEST(RecordPretrained, WeightsAreTheModelsOwnInEveryFamily) {
  const Tokenizer tokenizer = small_tokenizer();
  int64_t tried = 0;
  for (const std::string& name : GoldenFolder::names()) {
    SCOPED_TRACE(name);
    const Pretrained model = Pretrained::load(folder_of(name));
    const Architecture& architecture = model.architecture();
    if (architecture.patches || architecture.cross_attention) continue;
    ++tried;
    const Recording recording = record(model, tokenizer, {.text = "the dog sees it"});
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
  int labelling = 0;
  for (const std::string& name : GoldenFolder::names()) {
    const Pretrained model = Pretrained::load(folder_of(name));
    if (!model.architecture().cross_attention || model.architecture().patches) continue;
    SCOPED_TRACE(name);
    if (model.architecture().head.kind == HeadKind::sequence) continue;  // it reads the end that this tokenizer lacks
    if (reads_text_twice(model.architecture())) {
      ++labelling;
      const Recording twice = record(model, tokenizer, {.text = "the dog sees it"});
      ASSERT_EQ(twice.texts.size(), 3u);
      EXPECT_EQ(twice.texts[1].tokens.size(), 4u);
      EXPECT_EQ(std::vector(twice.texts[1].tokens.begin() + 1, twice.texts[1].tokens.end()),
                std::vector(twice.texts[0].tokens.begin(), twice.texts[0].tokens.end() - 1));
      for (const RecordedLayer* layer : twice.of(AttentionKind::cross)) EXPECT_EQ(layer->queries(), 4);
      EXPECT_TRUE(
          refusal_of([&] { record(model, tokenizer, {.text = "the dog", .written = "it"}); }).says("writes no text"));
      continue;
    }
    const Recording recording = record(model, tokenizer, {.text = "the dog sees it", .written = "it sees"});
    ASSERT_EQ(recording.texts.size(), 3u);
    EXPECT_EQ(recording.texts[1].tokens.size(), 3u);
    EXPECT_EQ(recording.texts[2].tokens.size(), 3u);
    for (const RecordedLayer* layer : recording.of(AttentionKind::cross)) {
      EXPECT_EQ(layer->queries(), 3);
      EXPECT_EQ(layer->keys(), 4);
    }
    EXPECT_FALSE(recording.of(AttentionKind::encoder).empty() || recording.of(AttentionKind::decoder).empty());
  }
  EXPECT_GT(labelling, 0);
}

TEST(RecordPretrained, ALongTextIsCutToWhatTheModelReads) {
  const Pretrained model = Pretrained::load(folder_of("bert_body"));
  const auto longest = static_cast<size_t>(model.architecture().embedding->max_positions);
  std::string text;
  for (size_t n = 0; n < longest; ++n) text += "a ";
  EXPECT_FALSE(record(model, small_tokenizer(), {.text = text}).cut);
  const Recording recording = record(model, small_tokenizer(), {.text = text + "b"});
  EXPECT_TRUE(recording.cut);
  EXPECT_EQ(recording.texts[0].tokens.size(), longest);
}

TEST(RecordPretrained, TextWithoutTokensIsRefused) {
  const Pretrained model = Pretrained::load(folder_of("bert_body"));
  EXPECT_TRUE(refusal_of([&] { record(model, small_tokenizer(), {}); }).says("the text has no token"));
  EXPECT_TRUE(refusal_of([&] {
                record(model, small_tokenizer(), {.text = "a", .written = "b"});
              }).says("a bert has no decoder behind an encoder"));
}

}  // namespace
}  // namespace mh
