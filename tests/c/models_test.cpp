// The C ABI of models: results against the models' own numbers and transformers' texts, refusals, many threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <type_traits>

#include "multihead/c.h"
#include "multihead/generate/text/translator.h"
#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/verbs/answerer.h"
#include "multihead/tasks/verbs/zero_shot.h"
#include "multihead/text/tokenizer.h"
#include "tests/generate/tiny_language_model.h"
#include "tests/models/encoder_folder.h"
#include "tests/models/text_to_text_folder.h"

namespace mh {
namespace {

using nlohmann::json;

struct FreeModel {
  void operator()(mh_model* model) const { mh_model_free(model); }
};
using Model = std::unique_ptr<mh_model, FreeModel>;

// Texts, and lists of the pointers to them that C wants.
struct CTexts {
  explicit CTexts(std::vector<std::string> texts, std::vector<std::string> pairs = {})
      : kept(std::move(texts)), kept_pairs(std::move(pairs)) {
    for (const std::string& each : kept) text.push_back(each.c_str());
    for (const std::string& each : kept_pairs) pair.push_back(each.c_str());
    in = {.size = sizeof in,
          .text = text.data(),
          .pair = pair.empty() ? nullptr : pair.data(),
          .count = static_cast<int64_t>(text.size())};
  }
  CTexts(const CTexts&) = delete;
  CTexts& operator=(const CTexts&) = delete;

  std::vector<std::string> kept{}, kept_pairs{};
  std::vector<const char*> text{}, pair{};
  mh_texts in{};
};

template <class Options>
using Call = mh_status (*)(const mh_model*, const mh_texts*, const Options*, mh_result**);

template <class Options>
Options zeros() {
  Options out{};
  out.size = sizeof out;
  return out;
}

class CModels : public testing::Test {
 protected:
  std::string put(const std::string& name) const {
    test::put_encoder(folder_ / name, name);
    return folder_ / name;
  }
  static Model load(const std::string& folder) {
    mh_model* model = nullptr;
    EXPECT_EQ(mh_model_load(folder.c_str(), nullptr, &model), MH_OK) << mh_last_error();
    return Model(model);
  }
  template <class Options>
  static json result_of(Call<Options> call, const Model& model, const CTexts& texts, const Options* options = nullptr) {
    mh_result* out = nullptr;
    EXPECT_EQ(call(model.get(), &texts.in, options, &out), MH_OK) << mh_last_error();
    json parsed = json::parse(std::string(mh_result_text(out)), nullptr, false);
    mh_result_free(out);
    return parsed;
  }
  template <class Options>
  static void expect_refused(Call<Options> call, const mh_model* model, const CTexts& texts,
                             std::type_identity_t<const Options*> options, mh_status status, const std::string& part) {
    auto* const before = reinterpret_cast<mh_result*>(8);
    mh_result* out = before;
    EXPECT_EQ(call(model, &texts.in, options, &out), status) << part;
    EXPECT_NE(std::string(mh_last_error()).find(part), std::string::npos) << mh_last_error();
    EXPECT_EQ(out, before);
  }
  // Row by row the probabilities of the labels.
  static std::vector<std::vector<double>> probabilities(const std::string& folder, const std::string& text) {
    const Encoded encoded = Tokenizer::load(folder).encode_input(text);
    const Tensor logits = Pretrained::load(folder).forward({.tokens = token_batch({encoded.ids})})["logits"];
    std::vector<std::vector<double>> out;
    for (int64_t row = 0; row < logits.size(0); ++row) {
      double sum = 0;
      for (int64_t n = 0; n < logits.size(1); ++n) sum += std::exp(logits.item({row, n}));
      out.emplace_back();
      for (int64_t n = 0; n < logits.size(1); ++n) out.back().push_back(std::exp(logits.item({row, n})) / sum);
    }
    return out;
  }
  static size_t top(const std::vector<double>& p) {
    return static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
  }
  TemporaryFolder folder_;
};

TEST_F(CModels, ClassifyGivesTheSoftmaxOfTheLogits) {
  const std::string folder = put("bert_sequence");
  const Model model = load(folder);
  EXPECT_STREQ(mh_model_verb(model.get()), "classify");
  mh_classify_options options = zeros<mh_classify_options>();
  options.all = 1;
  const std::vector<std::string> texts{"the cat sat", "ada"};
  const json said = result_of(mh_classify, model, CTexts(texts), &options);
  ASSERT_EQ(said.size(), 2U);
  const json names = test::json_file(folder + "/config.json")["id2label"];
  for (size_t n = 0; n < 2; ++n) {
    const std::vector<double> p = probabilities(folder, texts[n])[0];
    EXPECT_EQ(said[n]["label"], names[std::to_string(top(p))]);
    EXPECT_NEAR(said[n]["score"].get<double>(), p[top(p)], 1e-6);
    for (size_t label = 0; label < p.size(); ++label)
      EXPECT_NEAR(said[n]["scores"][names[std::to_string(label)].get<std::string>()].get<double>(), p[label], 1e-6);
  }
  EXPECT_FALSE(result_of<mh_classify_options>(mh_classify, model, CTexts(texts))[0].contains("scores"));
  EXPECT_EQ(result_of<mh_classify_options>(mh_classify, model, CTexts({"the cat"}, {"a dog"})),
            result_of<mh_classify_options>(mh_classify, model, CTexts({"the cat\ta dog"})));
  EXPECT_NE(result_of(mh_classify, model, CTexts({"the cat"}, {"a dog"}), &options),
            result_of(mh_classify, model, CTexts({"the cat"}), &options));
}

TEST_F(CModels, LabelsOfTheCallersOwnAreJudgedByWhatFollows) {
  const std::string folder = put("bert_sequence");
  json config = test::json_file(folder + "/config.json");
  size_t number = 0;
  for (auto& [id, name] : config["id2label"].items()) name = number++ == 0 ? "contradiction" : "entailment" + id;
  config.erase("label2id");
  put_text(folder + "/config.json", config.dump());
  const char* labels[] = {"cat", "dog"};
  mh_classify_options options = zeros<mh_classify_options>();
  options.labels = labels;
  options.label_count = 2;
  options.multi = options.all = 1;
  options.hypothesis = "a {} .";
  const json said = result_of(mh_classify, load(folder), CTexts({"ada sings"}), &options)[0];
  const std::vector<std::string> names{"cat", "dog"};
  const Classification wanted =
      ZeroShotClassifier::load(folder)("ada sings", names, {.hypothesis = "a {} .", .multi = true});
  EXPECT_EQ(said["label"], wanted.label);
  EXPECT_EQ(said["scores"]["dog"].get<float>(), wanted.scores[1]);
  options.labels = nullptr;
  options.label_count = 0;
  expect_refused(mh_classify, load(folder).get(), CTexts({"a"}), &options, MH_INVALID_ARGUMENT, "go with labels");
}

TEST_F(CModels, TagFillAndAnswerGivePlacesTokensAndAnswers) {
  const std::string tagger = put("bert_token"), filler = put("bert_masked"), answerer = put("bert_question");
  mh_tag_options each = zeros<mh_tag_options>();
  each.aggregation = MH_BY_NONE;
  const json tags = result_of(mh_tag, load(tagger), CTexts({"ada é sat"}), &each)[0];
  const auto p = probabilities(tagger, "ada é sat");
  const json names = test::json_file(tagger + "/config.json")["id2label"];
  ASSERT_EQ(tags.size(), 3U);  // no label of this model is called O
  EXPECT_EQ(tags[2]["begin"], 6);
  EXPECT_EQ(tags[2]["end"], 9);
  EXPECT_EQ(tags[2]["text"], "sat");
  for (size_t n = 0; n < 3; ++n) {
    const std::string name = names[std::to_string(top(p[n + 1]))];
    EXPECT_TRUE(name == tags[n]["label"]) << tags;
    EXPECT_NEAR(tags[n]["score"].get<double>(), p[n + 1][top(p[n + 1])], 1e-6);
  }
  mh_fill_options two = zeros<mh_fill_options>();
  two.k = 2;
  const json filled = result_of(mh_fill, load(filler), CTexts({"the [MASK] sat", "no gap"}), &two);
  const std::vector<double> row = probabilities(filler, "the [MASK] sat")[2];
  ASSERT_EQ(filled[0][0].size(), 2U);
  EXPECT_EQ(filled[0][0][0]["id"], top(row));
  EXPECT_NEAR(filled[0][0][0]["score"].get<double>(), row[top(row)], 1e-6);
  EXPECT_EQ(filled[1], json::array());
  EXPECT_EQ(result_of<mh_fill_options>(mh_fill, load(filler), CTexts({"[MASK]"}))[0][0].size(), 5U);

  mh_answer_options options = zeros<mh_answer_options>();
  options.longest = 1;
  for (const bool one_token : {false, true}) {
    const json said = result_of(mh_answer, load(answerer), CTexts({"who sings ?"}, {"ada sat . rome"}),
                                one_token ? &options : nullptr)[0];
    const Answer wanted =
        Answerer::load(answerer)("who sings ?", "ada sat . rome", {.longest_answer = one_token ? 1 : 15});
    EXPECT_EQ(said["answer"], wanted.text);
    EXPECT_EQ(said["begin"], wanted.begin);
    EXPECT_EQ(said["score"].get<float>(), wanted.score);
  }
  expect_refused<mh_answer_options>(mh_answer, load(answerer).get(), CTexts({"who ?"}), nullptr, MH_INVALID_ARGUMENT,
                                    "pair is null");
}

TEST_F(CModels, EmbedWritesTheMeanOfTheRowsIntoTheCallersArray) {
  const std::string folder = put("bert_body");
  const Model model = load(folder);
  int64_t width = 0;
  EXPECT_EQ(mh_embed_width(model.get(), &width), MH_OK);
  ASSERT_EQ(width, 8);
  const std::vector<std::string> texts{"the cat", "ada sings ."};
  const CTexts in(texts);
  std::vector<float> memory(2 * 10, 7);
  mh_array vectors{memory.data(), MH_F32, 2, {2, 8}, {10, 1}};
  ASSERT_EQ(mh_embed(model.get(), &in.in, nullptr, &vectors), MH_OK) << mh_last_error();
  for (size_t n = 0; n < 2; ++n) {
    const Encoded encoded = Tokenizer::load(folder).encode_input(texts[n]);
    const Tensor rows = Pretrained::load(folder).forward({.tokens = token_batch({encoded.ids})})["last_hidden_state"];
    for (int64_t c = 0; c < 8; ++c) {
      double sum = 0;
      for (int64_t row = 0; row < rows.size(0); ++row) sum += rows.item({row, c});
      EXPECT_NEAR(memory[n * 10 + static_cast<size_t>(c)], sum / static_cast<double>(rows.size(0)), 2e-6);
    }
    EXPECT_EQ(memory[n * 10 + 8], 7);
  }
  vectors.extent[1] = 7;
  EXPECT_EQ(mh_embed(model.get(), &in.in, nullptr, &vectors), MH_INVALID_ARGUMENT);
  EXPECT_STREQ(mh_last_error(), "mh_embed: vectors is f32 [2, 7]; expected f32 [2, 8]");
  mh_embed_options named = zeros<mh_embed_options>();
  named.prompt_name = "query";
  vectors.extent[1] = 8;
  EXPECT_EQ(mh_embed(model.get(), &in.in, &named, &vectors), MH_INVALID_ARGUMENT);
  EXPECT_NE(std::string(mh_last_error()).find("has no prompt 'query'"), std::string::npos);
  named.prompt = "a";
  EXPECT_EQ(mh_embed(model.get(), &in.in, &named, &vectors), MH_INVALID_ARGUMENT);
  EXPECT_NE(std::string(mh_last_error()).find("both given"), std::string::npos);
  EXPECT_EQ(mh_embed_width(model.get(), nullptr), MH_INVALID_ARGUMENT);
}

// transformers' generate() with the keys of each case in place of the folder's own.
TEST_F(CModels, WritingObeysTheKeysOfTheCaller) {
  for (const std::string name : {"marian_lm", "t5_lm"}) {
    const json golden = test::json_file(test::golden_of(name) + "/generation.json");
    const test::WordTokens tokens = test::put_text_to_text(folder_ / name, name);
    const Model model = load(folder_ / name);
    std::vector<std::string> prompts;
    for (std::vector<int> ids : golden["prompts"]) {
      ids.pop_back();
      prompts.push_back(test::words_of_ids(tokens, ids));
    }
    for (const json& one : golden["cases"]) {
      const std::string keys = one["options"].dump();
      mh_write_options options = zeros<mh_write_options>();
      options.config = keys.c_str();
      const json written = result_of(mh_generate, model, CTexts(prompts), &options);
      const json translated = result_of(mh_translate, model, CTexts(prompts), &options);
      const json summaries = result_of(mh_summarise, model, CTexts(prompts), &options);
      for (size_t n = 0; n < prompts.size(); ++n) {
        std::vector<int> ids;
        for (const int id : one["written"][n])
          if (!tokens.special.contains(id)) ids.push_back(id);
        EXPECT_EQ(translated[n]["text"], test::words_of_ids(tokens, ids)) << name << keys;
        EXPECT_EQ(summaries[n]["text"], translated[n]["text"]);
        EXPECT_EQ(written[n]["text"], translated[n]["text"]) << name << keys;
        EXPECT_EQ(written[n]["line"], n + 1);
      }
    }
  }
}

TEST_F(CModels, GenerateStreamsWhatItWrites) {
  test::write_language_model(folder_ / "model");
  const Model model = load(folder_ / "model");
  EXPECT_STREQ(mh_model_verb(model.get()), "generate");
  std::map<int64_t, std::string> heard;
  mh_write_options options = zeros<mh_write_options>();
  options.config = R"({"do_sample":false,"max_new_tokens":6})";
  options.self = &heard;
  options.on_text = [](void* self, int64_t prompt, const char* text, size_t bytes) {
    EXPECT_EQ(text[bytes], 0);
    (*static_cast<std::map<int64_t, std::string>*>(self))[prompt].append(text, bytes);
  };
  const json written = result_of(mh_generate, model, CTexts({"the cat"}), &options);
  EXPECT_EQ(written[0]["text"], heard[0]);
  EXPECT_LE(written[0]["tokens"], 6);
  EXPECT_GE(written[0]["tokens"], 1);
  options.config = R"({"num_return_sequences":2,"max_new_tokens":3})";
  expect_refused(mh_generate, model.get(), CTexts({"a"}), &options, MH_INVALID_ARGUMENT, "expected 1");
  options.on_text = nullptr;
  options.has_seed = 1;
  options.seed = 5;
  const json drawn = result_of(mh_generate, model, CTexts({"a", "the"}), &options);
  ASSERT_EQ(drawn.size(), 4U);
  EXPECT_EQ(drawn[3]["line"], 2);
  EXPECT_EQ(result_of(mh_generate, model, CTexts({"a", "the"}), &options), drawn);
  options.seed = 6;
  EXPECT_NE(result_of(mh_generate, model, CTexts({"a", "the"}), &options), drawn);
}

TEST_F(CModels, AModelOfAnotherTaskIsRefusedByTheCallThatItIsFor) {
  const Model tagger = load(put("bert_token")), filler = load(put("bert_masked"));
  test::put_text_to_text(folder_ / "marian", "marian_lm");
  const Model translator = load(folder_ / "marian"), picture = load(test::golden_of("vit_image"));
  const CTexts in({"a"});
  const auto refused = [&](auto call, const Model& model, const std::string& part) {
    expect_refused(call, model.get(), in, nullptr, MH_INVALID_ARGUMENT, part);
  };
  refused(&mh_classify, tagger, "is a bert token classifier, which is not for this call; use mh_tag");
  refused(&mh_tag, filler, "use mh_fill");
  refused(&mh_answer, filler, "use mh_fill");
  refused(&mh_fill, translator, "use mh_translate");
  refused(&mh_generate, tagger, "use mh_tag");
  refused(&mh_translate, filler, "use mh_fill");
  refused(&mh_summarise, tagger, "use mh_tag");
  refused(&mh_classify, picture, "use `multihead classify`");
  float number = 0;
  const mh_array one{&number, MH_F32, 2, {1, 1}, {1, 1}};
  EXPECT_EQ(mh_embed(translator.get(), &in.in, nullptr, &one), MH_INVALID_ARGUMENT);
  EXPECT_NE(std::string(mh_last_error()).find("use mh_translate"), std::string::npos);
}

TEST_F(CModels, DamagedFoldersAndTextsAreRefused) {
  mh_model* none = nullptr;
  EXPECT_EQ(mh_model_load((folder_ / "none").c_str(), nullptr, &none), MH_IO);
  EXPECT_NE(std::string(mh_last_error()).find("is not there"), std::string::npos);
  EXPECT_EQ(none, nullptr);
  const std::string folder = put("bert_sequence");
  std::filesystem::remove(folder + "/tokenizer.json");
  const Model model = load(folder);
  expect_refused<mh_classify_options>(mh_classify, model.get(), CTexts({}), nullptr, MH_IO, "tokenizer");
  put_text(folder + "/tokenizer.json", test::tiny_tokenizer());  // what was missing is looked for anew
  EXPECT_EQ(result_of<mh_classify_options>(mh_classify, model, CTexts({})), json::array());
  expect_refused<mh_classify_options>(mh_classify, model.get(), CTexts({"a", "\xff"}), nullptr, MH_INVALID_ARGUMENT,
                                      "text 2 is not UTF-8");
  expect_refused<mh_classify_options>(mh_classify, model.get(), CTexts({"a\tb"}, {"c"}), nullptr, MH_INVALID_ARGUMENT,
                                      "has a tab");
}

TEST_F(CModels, OptionsThatDoNotFitAreRefused) {
  test::put_text_to_text(folder_ / "marian", "marian_lm");
  const Model model = load(folder_ / "marian");
  const CTexts in({"w6"});
  mh_write_options options = zeros<mh_write_options>();
  const auto refused = [&](Call<mh_write_options> call, mh_status status, const std::string& part) {
    expect_refused(call, model.get(), in, &options, status, part);
  };
  options.config = "[]";
  refused(mh_translate, MH_INVALID_ARGUMENT, "mh_translate: config: is not a JSON object");
  options.config = R"({"num_beams":"four"})";
  refused(mh_translate, MH_INVALID_ARGUMENT, "num_beams is");
  options.config = R"({"typical_p":0.5})";
  refused(mh_translate, MH_UNSUPPORTED, "typical_p has no effect here");
  options.config = nullptr;
  options.to = "deu";
  refused(mh_generate, MH_INVALID_ARGUMENT, "mh_generate: to is given");
  refused(mh_summarise, MH_INVALID_ARGUMENT, "mh_summarise: to is given");
  options = zeros<mh_write_options>();
  options.sentences = 2;
  refused(mh_translate, MH_INVALID_ARGUMENT, "sentences is 2");
  options.sentences = 0;
  options.details = 1;
  const json detailed = result_of(mh_translate, model, in, &options)[0];
  EXPECT_TRUE(detailed["alignment"].is_array());
  EXPECT_GE(detailed["tokens"].size(), 1U);
}

// Four threads ask a model that none has loaded yet.
TEST_F(CModels, ManyThreadsShareAModel) {
  const Model model = load(put("bert_sequence"));
  const CTexts in({"the cat sat", "ada", "who sings ?"});
  std::vector<json> said(4);
  std::vector<std::string> errors(4);
  std::vector<std::thread> threads;
  for (size_t n = 0; n < 4; ++n)
    threads.emplace_back([&, n] {
      said[n] = result_of<mh_classify_options>(mh_classify, model, in);
      if (n == 2) mh_tag(model.get(), &in.in, nullptr, nullptr);
      errors[n] = mh_last_error();
    });
  for (std::thread& each : threads) each.join();
  for (size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(said[n], said[0]);
    EXPECT_EQ(errors[n].empty(), n != 2) << errors[n];
  }
  EXPECT_EQ(said[0].size(), 3U);
}

}  // namespace
}  // namespace mh
