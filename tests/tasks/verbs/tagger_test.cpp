// Taggers of Hugging Face's form: tokens of the text as it is, words and entities of them, windows of long texts.
#include "multihead/tasks/verbs/tagger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/tag.h"
#include "multihead/tasks/verbs/judged_tokens.h"
#include "tests/harness/refusal.h"
#include "tests/models/encoder_folder.h"

namespace mh {
namespace {

using Strings = std::vector<std::string>;
using Rows = std::vector<std::vector<double>>;

// Special tokens of roberta's before the others, <s> and </s> around a text.
std::string tokenizer_json(const nlohmann::ordered_json& model, const nlohmann::ordered_json& splitter) {
  nlohmann::ordered_json added = nlohmann::ordered_json::array();
  const char* specials[] = {"<s>", "<pad>", "</s>", "<unk>"};
  for (size_t id = 0; id < std::size(specials); ++id)
    added.push_back({{"id", id},
                     {"content", specials[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return nlohmann::ordered_json{{"version", "1.0"},
                                {"truncation", nullptr},
                                {"padding", nullptr},
                                {"added_tokens", added},
                                {"normalizer", nullptr},
                                {"pre_tokenizer", splitter},
                                {"post_processor",
                                 {{"type", "RobertaProcessing"},
                                  {"sep", {"</s>", 2}},
                                  {"cls", {"<s>", 0}},
                                  {"trim_offsets", true},
                                  {"add_prefix_space", false}}},
                                {"decoder", nullptr},
                                {"model", model}}
      .dump();
}

std::string byte_level() {
  nlohmann::ordered_json vocabulary;
  const char* tokens[] = {"<s>", "<pad>", "</s>", "<unk>", "a",  "d",  "i",  "n",
                          "Ġ",   ".",     "da",   "ada",   "Ġi", "Ġd", "Ġin"};
  for (size_t id = 0; id < std::size(tokens); ++id) vocabulary[tokens[id]] = id;
  return tokenizer_json(
      {{"type", "BPE"},
       {"dropout", nullptr},
       {"unk_token", nullptr},
       {"continuing_subword_prefix", ""},
       {"end_of_word_suffix", ""},
       {"fuse_unk", false},
       {"byte_fallback", false},
       {"ignore_merges", false},
       {"vocab", vocabulary},
       {"merges", {"Ġ d", "d a", "a da", "Ġ i", "Ġi n"}}},
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}});
}

std::string metaspace() {
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::array();
  for (const char* token : {"<s>", "<pad>", "</s>", "<unk>", "▁ada", "▁in", "▁da", "n", "i", "."})
    vocabulary.push_back({token, vocabulary.size() < 4 ? 0.0 : -1.0 - 0.01 * static_cast<double>(vocabulary.size())});
  return tokenizer_json({{"type", "Unigram"}, {"unk_id", 3}, {"vocab", vocabulary}, {"byte_fallback", false}},
                        {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}, {"split", true}});
}

class ForeignTaggers : public testing::Test {
 protected:
  // roberta_token, whose four labels get names, with this tokenizer.
  std::string put(const std::string& tokenizer) const {
    const std::string folder = folder_ / "tagger";
    test::put_encoder(folder, "roberta_token");
    auto config = nlohmann::json::parse(text_of(folder + "/config.json"));
    config["id2label"] = {{"0", "O"}, {"1", "B-PER"}, {"2", "I-PER"}, {"3", "I-LOC"}};
    config["label2id"] = {{"O", 0}, {"B-PER", 1}, {"I-PER", 2}, {"I-LOC", 3}};
    put_text(folder + "/config.json", config.dump());
    put_text(folder + "/tokenizer.json", tokenizer);
    return folder;
  }
  // Of every id the probabilities of the labels.
  static Rows probabilities(const std::string& folder, const std::vector<int32_t>& ids) {
    const Tensor logits = Pretrained::load(folder).forward({.tokens = token_batch({ids})})["logits"];
    Rows out;
    for (int64_t row = 0; row < logits.size(0); ++row) {
      double sum = 0;
      for (int64_t n = 0; n < logits.size(1); ++n) sum += std::exp(logits.item({row, n}));
      out.emplace_back();
      for (int64_t n = 0; n < logits.size(1); ++n) out.back().push_back(std::exp(logits.item({row, n})) / sum);
    }
    return out;
  }
  TemporaryFolder folder_;
};

size_t top(const std::vector<double>& p) {
  return static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
}

// The tags of words, by the definitions; `words`: by word its rows.
std::vector<std::pair<size_t, double>> tags_of(const Rows& p, const std::vector<std::vector<size_t>>& words,
                                               Aggregation how) {
  std::vector<std::pair<size_t, double>> out;
  for (const std::vector<size_t>& word : words) {
    std::vector<double> best = p[word[0]];
    if (how == Aggregation::max)
      for (const size_t row : word)
        if (p[row][top(p[row])] > best[top(best)]) best = p[row];
    if (how == Aggregation::average)
      for (size_t label = 0; label < best.size(); ++label) {
        best[label] = 0;
        for (const size_t row : word) best[label] += p[row][label] / static_cast<double>(word.size());
      }
    out.emplace_back(top(best), best[top(best)]);
  }
  return out;
}

void expect_tags(const std::string& folder, const std::string& text, const std::vector<int32_t>& ids,
                 const Strings& words, const std::vector<std::vector<size_t>>& rows, const Rows& p) {
  const Tagger tagger = Tagger::load(folder);
  ASSERT_EQ(Tokenizer::load(folder).encode_input(text).ids, ids);
  for (const Aggregation how : {Aggregation::first, Aggregation::average, Aggregation::max}) {
    const Tagging said = tagger(text, {.aggregation = how});
    const auto wanted = tags_of(p, rows, how);
    EXPECT_EQ(said.words, words);
    ASSERT_EQ(said.tags.size(), wanted.size());
    size_t entity = 0;
    for (size_t n = 0; n < wanted.size(); ++n) {
      EXPECT_EQ(said.tags[n], tagger.labels()[wanted[n].first]) << n;
      const bool alone = (n == 0 || said.tags[n - 1] == "O") && (n + 1 == wanted.size() || said.tags[n + 1] == "O");
      if (said.tags[n] == "O" || !alone) continue;
      while (entity < said.entities.size() && said.entities[entity].begin != text.find(words[n])) ++entity;
      ASSERT_LT(entity, said.entities.size());
      EXPECT_EQ(said.entities[entity].label, said.tags[n].substr(2));
      EXPECT_EQ(said.entities[entity].end, text.find(words[n]) + words[n].size());
      EXPECT_NEAR(said.entities[entity].score, wanted[n].second, 1e-6);
    }
  }
}

TEST_F(ForeignTaggers, AByteLevelTokenizerReadsTheTextAsItIs) {
  const std::string folder = put(byte_level());
  const std::vector<int32_t> ids{0, 11, 14, 13, 4, 7, 6, 9, 2};  // ada Ġin Ġd a n i .
  expect_tags(folder, "ada in dani.", ids, {"ada", "in", "dani."}, {{1}, {2}, {3, 4, 5, 6, 7}},
              probabilities(folder, ids));
}

TEST_F(ForeignTaggers, AMetaspaceTokenizerReadsTheTextAsItIs) {
  const std::string folder = put(metaspace());
  const std::vector<int32_t> ids{0, 4, 5, 6, 7, 8, 9, 2};  // ▁ada ▁in ▁da n i .
  expect_tags(folder, "ada in dani.", ids, {"ada", "in", "dani."}, {{1}, {2}, {3, 4, 5, 6}},
              probabilities(folder, ids));
}

TEST_F(ForeignTaggers, NoneGivesEveryTokenItsTag) {
  const std::string folder = put(byte_level()), text = "ada in dani.";
  const Rows p = probabilities(folder, {0, 11, 14, 13, 4, 7, 6, 9, 2});
  const std::pair<size_t, size_t> places[] = {{0, 3}, {4, 6}, {7, 8}, {8, 9}, {9, 10}, {10, 11}, {11, 12}};
  const Tagger tagger = Tagger::load(folder);
  const Tagging each = tagger(text, {.aggregation = Aggregation::none});
  EXPECT_EQ(each.words, (Strings{"ada", "in", "d", "a", "n", "i", "."}));
  size_t next = 0;
  for (size_t n = 0; n < 7; ++n) {
    const std::string tag = tagger.labels()[top(p[n + 1])];
    EXPECT_EQ(each.tags[n], tag);
    if (tag == "O") continue;
    ASSERT_LT(next, each.entities.size());
    EXPECT_EQ(each.entities[next].label, tag);
    EXPECT_EQ(each.entities[next].begin, places[n].first);
    EXPECT_EQ(each.entities[next].end, places[n].second);
    EXPECT_NEAR(each.entities[next++].score, p[n + 1][top(p[n + 1])], 1e-6);
  }
  EXPECT_EQ(next, each.entities.size());
  EXPECT_EQ(tagger(text, {.aggregation = Aggregation::simple}).tags, each.tags);
}

// bert_token reads 11 tokens, 9 of them of the text; windows share 3, so that one begins every 6 tokens.
TEST_F(ForeignTaggers, ATokenOfALongTextIsJudgedWhereItHasMostContext) {
  const std::string folder = folder_ / "long";
  test::put_encoder(folder, "bert_token");
  std::string text;
  std::vector<int32_t> ids;
  const char* words[] = {"a", "cat", "dog", "the", "sat", "on", "mat", "who", "sings", "ada", "rome"};
  for (size_t n = 0; n < 23; ++n) {
    text += (n > 0 ? " " : "") + std::string(words[n * n % 11]);
    ids.push_back(static_cast<int32_t>(5 + n * n % 11));
  }
  std::vector<int64_t> context(23, -1);
  Rows best(23);
  for (size_t begin = 0; begin < 20; begin += 6) {
    const size_t end = std::min<size_t>(23, begin + 9);
    std::vector<int32_t> window{2};
    window.insert(window.end(), ids.begin() + static_cast<int64_t>(begin), ids.begin() + static_cast<int64_t>(end));
    window.push_back(3);
    const Rows p = probabilities(folder, window);
    for (size_t n = begin; n < end; ++n) {
      const int64_t left = begin == 0 ? 99 : static_cast<int64_t>(n - begin);
      const int64_t right = end == 23 ? 99 : static_cast<int64_t>(end - 1 - n);
      if (std::min(left, right) <= context[n]) continue;
      context[n] = std::min(left, right);
      best[n] = p[n - begin + 1];
    }
  }
  const Tagger tagger = Tagger::load(folder);
  const Tagging said = tagger(text, {.aggregation = Aggregation::none, .stride = 3});
  ASSERT_EQ(said.tags.size(), 23U);
  ASSERT_EQ(said.entities.size(), 23U);  // no label of this model is called O
  for (size_t n = 0; n < 23; ++n) {
    EXPECT_EQ(said.tags[n], tagger.labels()[top(best[n])]) << n;
    EXPECT_NEAR(said.entities[n].score, best[n][top(best[n])], 1e-6) << n;
  }
  EXPECT_FALSE(said.cut);
  const Strings texts{"", text, "the cat", "a"};
  const std::vector<Tagging> together = tagger(texts, {.aggregation = Aggregation::none, .stride = 3});
  EXPECT_TRUE(together[0].words.empty());
  EXPECT_EQ(together[3].words, Strings{"a"});
  for (size_t n = 0; n < 23; ++n) EXPECT_EQ(together[1].entities[n].score, said.entities[n].score);  // bits
  EXPECT_TRUE(refusal_of([&] { tagger("a", {.stride = -1}); }).says("stride -1; expected 0 or more"));
  put_text(folder + "/tokenizer_config.json", R"({"model_max_length": 6})");
  const Rows shorter = probabilities(folder, {2, ids[0], ids[1], ids[2], ids[3], 3});
  const Tagging of_less = Tagger::load(folder)(text, {.aggregation = Aggregation::none, .stride = 0});
  EXPECT_NEAR(of_less.entities[1].score, shorter[2][top(shorter[2])], 1e-6);
}

// Probabilities of O, B-X, I-X, I-Y.
TEST(JudgedTokens, WordsAndEntitiesAreThoseOfTransformers) {
  const Strings labels{"O", "B-X", "I-X", "I-Y"};
  const std::string text = "ab cd ef. g";
  const detail::JudgedTokens tokens{
      .labels = 4,
      .spans = {{0, 1}, {1, 2}, {2, 5}, {5, 6}, {6, 8}, {8, 9}, {9, 11}},
      .words = {0, 0, 1, 2, 2, 3, 4},
      .p = {0.1F, 0.6F, 0.2F, 0.1F, 0.8F, 0.1F, 0.1F, 0.0F, 0.1F, 0.1F, 0.7F, 0.1F, 0.1F, 0.5F,
            0.3F, 0.1F, 0.3F, 0.1F, 0.5F, 0.1F, 0.0F, 0.1F, 0.0F, 0.9F, 0.0F, 0.1F, 0.1F, 0.8F}};
  EXPECT_EQ(detail::goes_on(tokens, text, true), (std::vector<bool>{false, true, false, false, true, false, false}));
  const std::vector<bool> on = detail::goes_on(tokens, text, false);
  EXPECT_EQ(on, (std::vector<bool>{false, true, false, false, false, true, false}));
  const auto said = [&](Aggregation how) {
    std::string out;
    const Tagging all = detail::aggregated(tokens, on, text, labels, how);
    for (const TaggedSpan& each : all.entities)
      out += fmt::format("{} {} {} {:.3f}, ", each.label, each.begin, each.end, each.score);
    return out;
  };
  EXPECT_EQ(said(Aggregation::none), "B-X 0 1 0.600, I-X 3 5 0.700, I-X 6 8 0.500, I-Y 8 9 0.900, I-Y 10 11 0.800, ");
  EXPECT_EQ(said(Aggregation::simple), "X 0 1 0.600, X 3 5 0.700, X 6 8 0.500, Y 8 11 0.850, ");
  EXPECT_EQ(said(Aggregation::first), "X 0 5 0.650, X 6 9 0.500, Y 10 11 0.800, ");
  EXPECT_EQ(said(Aggregation::average), "X 3 5 0.700, Y 6 11 0.650, ");
  EXPECT_EQ(said(Aggregation::max), "X 3 5 0.700, Y 6 11 0.850, ");
}

TEST_F(ForeignTaggers, ASentenceOfWordsIsEncodedAsItsText) {
  const Tokenizer tokenizer = Tokenizer::load(put(byte_level()));
  const Strings words{"ada", "in", "dani", "."};
  const WordTokens tokens = encode_sentence(tokenizer, words, 100);
  EXPECT_EQ(tokens.ids, (std::vector<int32_t>{0, 11, 14, 13, 4, 7, 6, 8, 9, 2}));  // … Ġ .
  EXPECT_EQ(tokens.first, (std::vector<int64_t>{1, 2, 3, 7}));
  EXPECT_EQ(encode_sentence(tokenizer, words, 6).ids, (std::vector<int32_t>{0, 11, 14, 13, 4, 2}));
  EXPECT_EQ(encode_sentence(tokenizer, words, 6).first, (std::vector<int64_t>{1, 2, 3}));
  const Strings strange{"ada", "xyz", "in"};  // no byte of the second has a token
  EXPECT_EQ(encode_sentence(tokenizer, strange, 100).ids, (std::vector<int32_t>{0, 11, 8, 14, 2}));
  EXPECT_EQ(encode_sentence(tokenizer, Strings{}, 9).ids, (std::vector<int32_t>{0, 2}));
}

}  // namespace
}  // namespace mh
