// Any folder whose model reads text is recorded as its verb reads it.
#include "multihead/show/text_recorder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "multihead/generate/text/text_generator.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/config_json.h"
#include "multihead/show/record_pretrained.h"
#include "multihead/tasks/models/labelled_model.h"
#include "multihead/text/learn_words.h"
#include "tests/generate/tiny_language_model.h"
#include "tests/generate/tiny_translator.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"
#include "tests/models/encoder_folder.h"
#include "tests/show/small_tokenizer.h"

namespace mh {
namespace {

using Tokens = std::vector<std::string>;
using Words = std::vector<int64_t>;

void expect_same_weights(const Recording& got, const std::vector<RecordedLayer>& expected) {
  ASSERT_EQ(got.layers.size(), expected.size());
  for (size_t n = 0; n < expected.size(); ++n) {
    const Tensor a = got.layers[n].weights().contiguous(), b = expected[n].weights().contiguous();
    ASSERT_EQ(a.shape(), b.shape());
    for (int64_t i = 0; i < a.count(); ++i) EXPECT_FLOAT_EQ(a.data<float>()[i], b.data<float>()[i]);
  }
}

class RecordFolder : public testing::Test {
 protected:
  std::string hugging_face(const std::string& name, const std::string& tokenizer) {
    test::put_encoder(folder_ / name, name);
    put_text(folder_ / name + "/tokenizer.json", tokenizer);
    return folder_ / name;
  }
  // A model of our own with labels for texts or for words.
  std::string labelled(const std::string& kind, int64_t types) {
    const std::string path = folder_ / kind + std::to_string(types);
    std::filesystem::create_directories(path);
    const Tokenizer tokenizer = learn_words({"the cat sat .", "a dog sings"}, {.min_count = 1, .wraps = kind != "tag"});
    tokenizer.save(path + "/tokenizer.json");
    const SequenceClassifierConfig config{.encoder = {.vocabulary = tokenizer.size(),
                                                      .width = 16,
                                                      .heads = 2,
                                                      .feed_forward = 24,
                                                      .encoder_layers = 2,
                                                      .max_length = 8},
                                          .head = {.pooling = kind == "tag" ? Pooling::none : Pooling::mean},
                                          .types = types,
                                          .classes = 2};
    const TextModel model(SequenceClassifier(config, std::make_shared<ParamStore>(ParamStoreOptions{.seed = 4})));
    save_labelled_model(path, kind, model, Labels::in_order({"O", "B-X"}), tokenizer);
    return path;
  }
  // What the model's own pass over these ids shows.
  static std::vector<RecordedLayer> watched(const std::string& path, const std::string& kind,
                                            const std::vector<std::string>& tokens, std::vector<int32_t> types) {
    LabelledModel loaded = load_labelled_model(path, kind);
    loaded.model.pack(DType::f32);
    std::vector<int32_t> ids;
    for (const std::string& token : tokens) ids.push_back(loaded.tokenizer.id(token).value());
    AttentionRecorder recorder;
    Pass pass = Pass::inference().watched_by(&recorder);
    const auto count = static_cast<int64_t>(ids.size());
    loaded.model.logits(token_batch({ids}), types.empty() ? Tensor() : tensor<int32_t>(types, {count}), pass);
    return recorder.layers;
  }
  TemporaryFolder folder_;
};

TEST_F(RecordFolder, AClassifierOfOurOwnReadsTextsAndPairs) {
  const std::string one = labelled("classify", 1), two = labelled("classify", 2);
  const Recording text = TextRecorder::load(one)({.text = "The dog sings"});
  const Tokens spelled{"[CLS]", "The", "dog", "sings", "[SEP]"};
  EXPECT_EQ(text.texts[0].tokens, spelled);
  EXPECT_EQ(text.texts[0].words, (Words{-1, 0, 1, 2, -1}));
  expect_same_weights(text, watched(one, "classify", {"[CLS]", "the", "dog", "sings", "[SEP]"}, {}));
  const Recording pair = TextRecorder::load(two)({.text = "a cat", .pair = "the dog"});
  const Tokens both{"[CLS]", "a", "cat", "[SEP]", "the", "dog", "[SEP]"};
  EXPECT_EQ(pair.texts[0].tokens, both);
  EXPECT_EQ(pair.texts[0].words, (Words{-1, 0, 1, -1, 2, 3, -1}));
  expect_same_weights(pair, watched(two, "classify", both, {0, 0, 0, 0, 1, 1, 1}));
  EXPECT_TRUE(refusal_of([&] { TextRecorder::load(two)({.text = "a"}); }).says("reads pairs"));
  EXPECT_TRUE(refusal_of([&] { TextRecorder::load(one)({.text = "a", .written = "b"}); }).says("has no decoder"));
  const Recording cut = TextRecorder::load(one)({.text = "a a a a a a a a a a"});
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(cut.texts[0].tokens.size(), 8u);
}

TEST_F(RecordFolder, ATaggerOfOurOwnReadsWords) {
  const std::string path = labelled("tag", 1);
  const Recording recording = TextRecorder::load(path)({.text = "the dog, a cat"});
  EXPECT_EQ(recording.texts[0].tokens, (Tokens{"the", "dog", "[UNK]", "a", "cat"}));
  EXPECT_EQ(recording.texts[0].words, (Words{0, 1, 2, 3, 4}));
  EXPECT_FALSE(recording.cut);
  expect_same_weights(recording, watched(path, "tag", {"the", "dog", "[UNK]", "a", "cat"}, {}));
  EXPECT_TRUE(TextRecorder::load(path)({.text = "a a a a a a a a a"}).cut);
  EXPECT_TRUE(refusal_of([&] { TextRecorder::load(path)({.text = " "}); }).says("the text has no token"));
}

TEST_F(RecordFolder, ALanguageModelOfOurOwnReadsWhatFits) {
  test::write_language_model(folder_.path());
  const LanguageModelFolder loaded = load_language_model(folder_.path());
  const TextRecorder recorder = TextRecorder::load(folder_.path());
  expect_same_weights(recorder({.text = "the cat"}), record(loaded.model, loaded.tokenizer, "the cat").layers);
  const Recording cut = recorder({.text = std::string(300, 'x')});
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(cut.texts[0].tokens.size(), 32u);
}

TEST_F(RecordFolder, AnEncoderWithADecoderWritesByItself) {
  const std::string path = hugging_face("t5_lm", test::small_tokenizer_json());
  const TextGenerator generator = TextGenerator::load(path);
  const Continuation written = generator.write({"the dog sees it"}, generator.defaults()).front().front();
  ASSERT_FALSE(written.ids.empty());
  const Tokenizer tokenizer = Tokenizer::load(path);
  const Recording own = TextRecorder::load(path)({.text = "the dog sees it"});
  ASSERT_EQ(own.texts.size(), 3u);
  EXPECT_EQ(own.texts[1].tokens.size(), written.ids.size() + 1);
  for (size_t n = 0; n < written.ids.size(); ++n)
    EXPECT_EQ(own.texts[2].tokens[n], tokenizer.token(written.ids[n])) << n;
  const Pretrained model = Pretrained::load(path);
  expect_same_weights(
      own, record(model, tokenizer, {.text = "the dog sees it", .written = tokenizer.decode(written.ids)}).layers);
  EXPECT_EQ(TextRecorder::load(path)({.text = "the", .written = "it"}).texts[1].tokens.size(), 2u);
}

TEST_F(RecordFolder, APairOfTextsHasItsTypes) {
  const std::string path = hugging_face("bert_sequence", test::tiny_tokenizer());
  const Recording recording = TextRecorder::load(path)({.text = "the cat", .pair = "sat"});
  EXPECT_EQ(recording.texts[0].tokens, (Tokens{"[CLS]", "the", "cat", "[SEP]", "sat", "[SEP]"}));
  EXPECT_EQ(recording.texts[0].words, (Words{-1, 0, 1, -1, 2, -1}));
  const ModelOutputs outputs = Pretrained::load(path).forward({.tokens = token_batch({{2, 8, 6, 3, 9, 3}}),
                                                               .types = tensor<int32_t>({0, 0, 0, 0, 1, 1}, {6}),
                                                               .attentions = true});
  const std::vector<Tensor>& own = outputs.layers.at("attentions");
  for (size_t n = 0; n < own.size(); ++n) {
    const Tensor weights = recording.layers[n].weights();
    for (int64_t h = 0; h < weights.size(0); ++h)
      for (int64_t i = 0; i < 6; ++i)
        for (int64_t j = 0; j < 6; ++j) EXPECT_NEAR(weights.item({h, i, j}), own[n].item({0, h, i, j}), 1e-6);
  }
}

TEST_F(RecordFolder, WhatCannotBeRecordedIsRefusedWhenItIsLoaded) {
  const auto says = [](const std::string& path, const std::string& part) {
    const Refusal refusal = refusal_of([&] { TextRecorder::load(path); });
    EXPECT_TRUE(refusal.says(part)) << refusal.sentence;
    return refusal.kind;
  };
  const std::string image = folder_ / "image";
  test::put_encoder(image, "vit_image");
  std::filesystem::remove(image + "/tokenizer.json");
  EXPECT_EQ(says(image, "is a vit image classifier, which reads images; expected a model that reads text"),
            ErrorKind::unsupported);
  std::filesystem::create_directories(folder_ / "lstm");
  write_safetensors(folder_ / "lstm/model.safetensors",
                    {.tensors = {}, .metadata = {{kConfigKey, R"({"kind":"lstm"})"}}});
  EXPECT_EQ(says(folder_ / "lstm", "whose attention is not recorded; expected a Transformer"), ErrorKind::unsupported);
  std::filesystem::create_directories(folder_ / "translator");
  test::write_translator(folder_ / "translator");
  says(folder_ / "translator", "is a translator of our own");
  says("/nowhere", "'/nowhere' is not there");
}

}  // namespace
}  // namespace mh
