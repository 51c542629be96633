// Hugging Face's encoder-decoders as translators, beside transformers' generate(), token for token.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "multihead/generate/models/pretrained_generator.h"
#include "multihead/generate/search.h"
#include "multihead/generate/text/languages.h"
#include "multihead/generate/text/translation_model.h"
#include "multihead/generate/text/translator.h"
#include "tests/harness/refusal.h"
#include "tests/models/text_to_text_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using test::WordTokens;

using Ids = std::vector<int32_t>;

constexpr const char* kFolders[] = {"marian_lm", "m2m_100_lm", "mbart_lm", "t5_lm", "mt5_lm", "bart_lm", "pegasus_lm"};
constexpr size_t kForced = 2;  // the golden case with forced_bos_token_id 9

// What transformers wrote for prompt n, without its end.
Ids golden_ids(const json& golden, size_t a_case, size_t n) {
  Ids ids = golden["cases"][a_case]["written"][n];
  const int32_t end = golden["cases"][a_case]["options"]["eos_token_id"];
  ids.erase(std::find(ids.begin(), ids.end(), end), ids.end());
  return ids;
}

class PretrainedTranslator : public testing::Test {
 protected:
  // The prompt without its first `left_out` ids and without its end.
  static std::string text_of_prompt(const WordTokens& tokens, const json& golden, size_t n, size_t left_out = 0) {
    std::vector<int> ids = golden["prompts"][n];
    ids.pop_back();
    ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(left_out));
    return test::words_of_ids(tokens, ids);
  }
  void set(const std::string& file, const json& keys) const {
    json all = test::json_file(folder_ / file);
    all.update(keys);
    put_text(folder_ / file, all.dump());
  }
  TemporaryFolder folder_;
};

TEST_F(PretrainedTranslator, WritesWhatTransformersWrites) {
  for (const std::string name : kFolders) {
    const json golden = test::json_file(test::golden_of(name) + "/generation.json");
    const WordTokens tokens = test::put_text_to_text(folder_.path(), name);
    std::vector<std::string> lines;
    for (size_t n = 0; n < golden["prompts"].size(); ++n) lines.push_back(text_of_prompt(tokens, golden, n));
    for (size_t a_case = 0; a_case < golden["cases"].size(); ++a_case) {
      put_text(folder_ / "generation_config.json", golden["cases"][a_case]["options"].dump());
      const auto found = Translator::load(folder_.path()).translate(lines);
      for (size_t n = 0; n < lines.size(); ++n) {
        const Ids ids = golden_ids(golden, a_case, n);
        EXPECT_EQ(found[n].candidates[0].ids, ids) << name << " case " << a_case << " prompt " << n;
        EXPECT_FALSE(found[n].cut);
        std::vector<int> written;
        for (const int32_t id : ids)
          if (!tokens.special.contains(id)) written.push_back(id);
        EXPECT_EQ(found[n].text(), test::words_of_ids(tokens, written)) << name;
      }
    }
  }
}

// As NLLB: the source's language before the text, the wanted one before what is written.
TEST_F(PretrainedTranslator, LanguagesStandWhereNllbPutsThem) {
  const json golden = test::json_file(test::golden_of("m2m_100_lm") + "/generation.json");
  const WordTokens tokens = test::put_text_to_text(
      folder_.path(), "m2m_100_lm",
      {.special = {{3, "eng_Latn"}, {7, "fra_Latn"}, {9, "deu_Latn"}, {19, "zho_Hans"}, {20, "zho_Hant"}},
       .before = {3}});
  json options = golden["cases"][kForced]["options"];
  options.erase("forced_bos_token_id");
  put_text(folder_ / "generation_config.json", options.dump());
  const Translator translator = Translator::load(folder_.path());
  EXPECT_EQ(translator.languages(),
            (std::vector<std::string>{"deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant"}));
  const auto translated = [&](size_t n, const LanguagePair& pair) {
    return translator.write({text_of_prompt(tokens, golden, n, 1)}, translator.defaults().how, {.languages = pair})
        .front()
        .candidates[0];
  };
  EXPECT_EQ(translated(1, {.to = "deu_Latn"}).ids, golden_ids(golden, kForced, 1));
  EXPECT_EQ(translated(1, {.from = "eng", .to = "deu"}).ids, golden_ids(golden, kForced, 1));
  // The text itself has both languages' tokens, which stay.
  const Candidate french = translated(2, {.from = "fra_Latn", .to = "deu_Latn"});
  EXPECT_EQ(french.ids, golden_ids(golden, kForced, 2));
  EXPECT_EQ(french.sentences[0].source_ids, golden["prompts"][2].get<Ids>());
  EXPECT_NE(translated(1, {.to = "fra_Latn"}).ids, golden_ids(golden, kForced, 1));
  EXPECT_EQ(translated(1, {.to = "fra_Latn"}).ids.front(), 7);
  const auto refusal = refusal_of([&] { translated(1, {.to = "engl"}); });
  EXPECT_EQ(refusal.kind, ErrorKind::invalid_argument);
  EXPECT_TRUE(refusal.says("knows no language 'engl'; expected one of its 5, such as eng_Latn"));
  EXPECT_TRUE(refusal_of([&] { translated(1, {.to = "zho"}); }).says("may be any of zho_Hans, zho_Hant"));
  EXPECT_TRUE(refusal_of([&] { translated(1, {.from = "xx", .to = "deu_Latn"}); }).says("such as deu_Latn, eng_Latn"));
}

TEST_F(PretrainedTranslator, MarianIsToldTheLanguageInFrontOfTheSource) {
  const json golden = test::json_file(test::golden_of("marian_lm") + "/generation.json");
  const WordTokens tokens =
      test::put_text_to_text(folder_.path(), "marian_lm", {.special = {{4, ">>deu<<"}, {6, ">>nld<<"}}});
  put_text(folder_ / "generation_config.json", golden["cases"][1]["options"].dump());
  const Translator translator = Translator::load(folder_.path());
  for (const size_t n : {1U, 2U}) {
    const TextOptions text{.languages = {.to = n == 1 ? "deu" : ">>nld<<"}};
    const auto found = translator.write({text_of_prompt(tokens, golden, n, 1)}, translator.defaults().how, text);
    EXPECT_EQ(found[0].candidates[0].ids, golden_ids(golden, 1, n));
    EXPECT_EQ(found[0].candidates[0].sentences[0].source_ids, golden["prompts"][n].get<Ids>());
  }
  EXPECT_TRUE(refusal_of([&] {
                translator.write({"w7"}, translator.defaults().how, {.languages = {.from = "deu", .to = "nld"}});
              }).says("told the language wanted alone"));
}

TEST_F(PretrainedTranslator, TasksOfTheConfigHaveTheirPrefixAndTheirSearch) {
  const json golden = test::json_file(test::golden_of("t5_lm") + "/generation.json");
  const WordTokens tokens = test::put_text_to_text(folder_.path(), "t5_lm");
  std::vector<int> start = golden["prompts"][1];
  start.resize(2);
  json german = golden["cases"][1]["options"], summary = golden["cases"][kForced]["options"];
  german["prefix"] = summary["prefix"] = test::words_of_ids(tokens, start) + " ";
  set("config.json", {{"task_specific_params", {{"translation_en_to_de", german}, {"summarization", summary}}}});
  const Translator translator = Translator::load(folder_.path());
  const std::string text = text_of_prompt(tokens, golden, 1, 2);
  const LanguagePair pair{.to = "de"};
  ASSERT_EQ(translator.task_of(pair), "translation_en_to_de");
  EXPECT_EQ(translator.task_of({.from = "fr", .to = "de"}), "");
  const auto& german_task = translator.defaults("translation_en_to_de");
  EXPECT_EQ(translator.write({text}, german_task.how, {.languages = pair})[0].candidates[0].ids,
            golden_ids(golden, 1, 1));
  const auto& summary_task = translator.defaults("summarization");
  EXPECT_EQ(translator.write({text}, summary_task.how, {.prefix = summary_task.prefix})[0].candidates[0].ids,
            golden_ids(golden, kForced, 1));
  EXPECT_TRUE(refusal_of([&] {
                translator.write({text}, summary_task.how, {.languages = {.to = "ro"}});
              }).says("no task of the model is '' to 'ro'; expected one of en_to_de"));
  EXPECT_EQ(&translator.defaults("cola"), &translator.defaults());
}

TEST_F(PretrainedTranslator, LooksAtTheSourceWithItsFrame) {
  const WordTokens tokens = test::put_text_to_text(folder_.path(), "bart_lm");
  const Translator translator = Translator::load(folder_.path());
  const TranslatedSentence one = translator.translate({"w7 w9 w11"})[0].candidates[0].sentences[0];
  const Pretrained model = Pretrained::load(folder_.path());
  EXPECT_EQ(translator.decoder_layers(), model.architecture().decoder->layers);
  Ids input = one.ids;
  input.insert(input.begin(), 2);
  ModelInputs inputs;
  inputs.tokens = token_batch({{7, 9, 11, 2}});
  inputs.decoder = token_batch({input});
  inputs.attentions = true;
  const auto layers = model.forward(inputs).layers.at("cross_attentions");
  for (int64_t layer = 0; layer < translator.decoder_layers(); ++layer) {
    const CrossAttention looked = translator.cross_attention(one, layer);
    EXPECT_EQ(looked.source, (std::vector<std::string>{"w7", "w9", "w11", "</s>"}));
    const Tensor& wanted = layers[static_cast<size_t>(layer)];
    ASSERT_EQ(looked.weights.size(0), translator.heads());
    for (int64_t h = 0; h < looked.weights.size(0); ++h)
      for (int64_t t = 0; t < looked.weights.size(1); ++t)
        for (int64_t s = 0; s < 4; ++s)
          EXPECT_NEAR(looked.weights.item({h, t, s}), wanted.item({0, h, t, s}), 1e-6) << layer << h << t << s;
  }
  EXPECT_THROW(translator.cross_attention(one, translator.decoder_layers()), Error);
}

TEST_F(PretrainedTranslator, ALineIsOneSentenceAndIsCutBeforeItsEnd) {
  test::put_text_to_text(folder_.path(), "m2m_100_lm");  // 40 positions
  const Translator translator = Translator::load(folder_.path());
  std::string line;
  for (int n = 0; n < 50; ++n) line += "w6 ";
  const Translation cut = translator.translate({line})[0];
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(cut.source_tokens, 51);
  Ids wanted(39, 6);
  wanted.push_back(2);
  EXPECT_EQ(cut.candidates[0].sentences[0].source_ids, wanted);
  const Translation short_cut = translator.write({line}, translator.defaults().how, {.max_source = 4})[0];
  EXPECT_EQ(short_cut.candidates[0].sentences[0].source_ids, (Ids{6, 6, 6, 2}));
  EXPECT_EQ(translator(""), "");
  const std::string two = "The w6 is here. The w7 is there.";
  EXPECT_EQ(translator.translate({two})[0].candidates[0].sentences.size(), 1U);
  const auto sentences = translator.write({two}, translator.defaults().how, {.split = true});
  EXPECT_EQ(sentences[0].candidates[0].sentences.size(), 2U);
}

TEST_F(PretrainedTranslator, IsOnlyRunAndRefusesOtherModels) {
  test::put_text_to_text(folder_.path(), "t5_lm");
  const TranslationFolder loaded = load_translation_folder(folder_.path());
  EXPECT_FALSE(loaded.ours);
  Pass pass = Pass::inference();
  EXPECT_TRUE(refusal_of([&] { loaded.model->loss({}, pass, 0); }).says("is not trained as a translator"));
  EXPECT_TRUE(refusal_of([&] { loaded.model->save("x", {}); }).says("is not saved as a translator"));
  EXPECT_TRUE(refusal_of([&] {
                Translator::load(test::golden_of("bert_question"));
              }).says("expected a model that writes one text from another: use `multihead answer`"));
  EXPECT_TRUE(refusal_of([&] { Translator::load(test::golden_of("gpt2_lm")); }).says("use `multihead generate`"));
  put_text(folder_ / "config.json", "{");
  EXPECT_EQ(refusal_of([&] { Translator::load(folder_.path()); }).kind, ErrorKind::io);
}

TEST(Languages, AreToldByTheSpellingOfTheirTokens) {
  const auto names = [](const std::map<int, std::string>& special) {
    const WordTokens tokens{.special = special};
    return detail::Languages(Tokenizer::parse(test::word_tokenizer(tokens), "x")).names();
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({{3, "de_DE"}, {4, "en_XX"}, {6, "de_de"}, {7, "_DE"}, {8, "abcd_DE"}}), (Names{"de_DE", "en_XX"}));
  EXPECT_EQ(names({{3, "deu_Latn"}, {4, "deu_LATN"}, {6, "de_Latn"}, {7, "deu_Lat"}}), (Names{"deu_Latn"}));
  EXPECT_EQ(names({{3, "__de__"}, {4, "__ast__"}, {6, "____"}, {7, "__DE__"}}), (Names{"ast", "de"}));
  EXPECT_EQ(names({{3, ">>cmn_Hans<<"}, {4, ">><<"}, {6, "<s>"}}), (Names{"cmn_Hans"}));
  EXPECT_EQ(names({}), Names{});
  const WordTokens m2m{.special = {{3, "__de__"}, {4, "__en__"}}};
  const detail::Languages languages(Tokenizer::parse(test::word_tokenizer(m2m), "x"));
  EXPECT_EQ(languages.token("__de__"), 3);
  EXPECT_EQ(languages.token("en"), 4);
  EXPECT_TRUE(languages.has(4));
  EXPECT_FALSE(languages.has(5));
}

}  // namespace
}  // namespace mh
