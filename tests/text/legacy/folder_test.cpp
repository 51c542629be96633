// Folders of older formats: each gives the ids of the tokenizer.json that says the same.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/error.h"
#include "multihead/text/legacy/piece_model.h"
#include "multihead/text/tokenizer.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using nlohmann::json;

json legacy_golden(const std::string& name, size_t row) {
  std::ifstream file(MH_TEST_DATA "/text/golden/" + name, std::ios::binary);
  std::string line;
  for (size_t i = 0; i <= row; ++i) std::getline(file, line);
  return json::parse(line).at("file");
}

std::vector<std::string> tokens_by_id(const json& vocabulary) {
  std::vector<std::string> out(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) out.at(id.get<size_t>()) = token;
  return out;
}

// The wire format of protocol buffers.
std::string wire(uint64_t number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (uint64_t size = bytes.size();; size >>= 7) {
    out.push_back(static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0)));
    if (size <= 0x7f) break;
  }
  return out + bytes;
}

std::string wire_number(uint64_t number, uint8_t value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

std::string piece(const std::string& text, float score, uint8_t kind = 1) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return wire(1, wire(1, text) + '\x15' + bits + wire_number(3, kind));
}

std::string small_model(bool bpe) {
  std::string out = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3);
  float score = 0;
  for (const char* text : {"\xe2\x96\x81the", "\xe2\x96\x81t", "he", "\xe2\x96\x81", "t", "h", "e", "d", "o", "g", "do",
                           "\xe2\x96\x81"
                           "d"})
    out += piece(text, bpe ? score -= 1 : -static_cast<float>(std::strlen(text)));
  const std::string bpe_type = std::string("\x18") + (bpe ? '\x02' : '\x01');
  return out + wire(2, bpe_type) + wire(3, wire_number(3, 1) + wire_number(4, 1));
}

TEST(Legacy, VocabTxtIsABertTokenizer) {
  const json file = legacy_golden("pipelines.jsonl", 0);
  const TemporaryFolder folder;
  std::string lines;
  for (const std::string& token : tokens_by_id(file.at("model").at("vocab"))) lines += token + "\n";
  put_text(folder / "vocab.txt", lines);
  const Tokenizer modern = Tokenizer::parse(file.dump(), "x"), older = Tokenizer::load(folder.path());
  for (const std::string text : {"The dog's unaffable.", "the dog [SEP] CAF\u00c9 \u4f60\u597d", ""}) {
    EXPECT_EQ(older.encode_input(text).ids, modern.encode_input(text).ids) << text;
    EXPECT_EQ(older.encode_pair(text, "a b").types, modern.encode_pair(text, "a b").types) << text;
  }
  put_text(folder / "tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_NE(Tokenizer::load(folder.path()).encode("The"), older.encode("The"));
  put_text(folder / "vocab.txt", "a\n\nb\n");
  EXPECT_THROW(Tokenizer::load(folder.path()), Error);
}

TEST(Legacy, VocabularyAndMergesAreAByteLevelBpe) {
  const json file = legacy_golden("encodings.jsonl", 0);
  const TemporaryFolder folder;
  std::string merges = "#version: 0.2\n";
  for (const json& merge : file.at("model").at("merges"))
    merges += merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>() + "\n";
  put_text(folder / "vocab.json", file.at("model").at("vocab").dump());
  put_text(folder / "merges.txt", merges);
  const Tokenizer modern = Tokenizer::parse(file.dump(), "x"), older = Tokenizer::load(folder.path());
  for (const std::string text : {"Tom's dog is here, isn't he?", "  \u00fcber <mask> x"}) {
    EXPECT_EQ(older.encode_pair(text, "a b").ids, modern.encode_pair(text, "a b").ids) << text;
    EXPECT_EQ(older.encode_input(text).offsets, modern.encode_input(text).offsets) << text;
  }
  put_text(folder / "merges.txt", "a b c\n");
  EXPECT_THROW(Tokenizer::load(folder.path()), Error);
}

TEST(Legacy, ASentencePieceModelIsReadByHand) {
  const detail::PieceModel model = detail::read_piece_model(small_model(false), "x");
  ASSERT_EQ(model.pieces.size(), 15u);
  EXPECT_EQ(model.pieces[3].text, "\xe2\x96\x81the");
  EXPECT_EQ(model.pieces[3].score, -6);
  EXPECT_EQ(model.unknown(), 0u);
  EXPECT_FALSE(model.is_bpe);
  const TemporaryFolder folder;
  for (const bool bpe : {false, true}) {
    put_text(folder / "spiece.model", small_model(bpe));
    const Tokenizer tokenizer = Tokenizer::load(folder / "spiece.model");
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("  the   dog ")), "the dog");
    EXPECT_EQ(tokenizer.token(tokenizer.encode("the dog")[0]), "\xe2\x96\x81the");
    EXPECT_EQ(tokenizer.encode_input("the").ids.size(), 1u);
  }
}

TEST(Legacy, TheClassOfAFolderNamesItsSpecialTokens) {
  const TemporaryFolder folder;
  put_text(folder / "spiece.model", small_model(false));
  put_text(folder / "tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer"})");
  const Tokenizer t5 = Tokenizer::load(folder.path());
  EXPECT_EQ(t5.encode_input("the").ids, (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(t5.id("<extra_id_0>"), t5.size() - 1);
  put_text(folder / "tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizer"})");
  EXPECT_EQ(Tokenizer::load(folder.path()).encode_input("the").ids, (std::vector<int32_t>{0, 4, 2}));
  put_text(folder / "tokenizer_config.json", R"({"tokenizer_class": "SurpriseTokenizer"})");
  EXPECT_THROW(Tokenizer::load(folder.path()), Error);
}

TEST(Legacy, MarianTakesPiecesFromTheSourceAndIdsFromTheVocabulary) {
  const TemporaryFolder folder;
  put_text(folder / "source.spm", small_model(false));
  put_text(folder / "vocab.json", json({{"</s>", 0},
                                        {"<unk>", 1},
                                        {"\xe2\x96\x81the", 2},
                                        {"\xe2\x96\x81", 3},
                                        {"do", 4},
                                        {"g", 5},
                                        {"zz", 6},
                                        {"<pad>", 7},
                                        {">>de<<", 8}})
                                      .dump());
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.encode_input("the dog").ids, (std::vector<int32_t>{2, 3, 4, 5, 0}));
  EXPECT_EQ(tokenizer.encode_input(">>de<< the").ids, (std::vector<int32_t>{8, 2, 0}));
  EXPECT_EQ(tokenizer.encode_input("the x").ids, (std::vector<int32_t>{2, 3, 1, 0}));
}

// The places of languages are transformers' FAIRSEQ_LANGUAGE_CODES: behind all pieces, in their order there.
TEST(Legacy, M2mPutsItsLanguagesBehindTheVocabulary) {
  for (const bool bpe : {false, true}) {
    const TemporaryFolder folder;
    put_text(folder / "sentencepiece.bpe.model", small_model(bpe));
    json vocabulary;
    for (const char* token : {"<s>", "<pad>", "</s>", "<unk>", "\xe2\x96\x81the", "\xe2\x96\x81", "do", "g", "he",
                              "\xe2\x96\x81t", "t", "h", "e", "d", "o"})
      vocabulary[token] = vocabulary.size();
    put_text(folder / "vocab.json", vocabulary.dump());
    const Tokenizer english = Tokenizer::load(folder.path());
    EXPECT_EQ(english.size(), 15 + 100);
    EXPECT_EQ(english.id("__af__"), 15);
    EXPECT_EQ(english.id("__zu__"), 114);
    EXPECT_EQ(english.encode_input("the dog").ids, (std::vector<int32_t>{33, 4, 5, 6, 7, 2})) << bpe;
    EXPECT_EQ(english.decode({31, 4, 5, 6, 7, 2}), "the dog");
    EXPECT_EQ(english.encode("x").back(), 3);
    put_text(folder / "tokenizer_config.json", R"({"src_lang": "de"})");
    EXPECT_EQ(Tokenizer::load(folder.path()).encode_input("the").ids, (std::vector<int32_t>{31, 4, 2}));
    put_text(folder / "tokenizer_config.json", R"({"src_lang": "de", "language_codes": "wmt21"})");
    EXPECT_EQ(Tokenizer::load(folder.path()).encode_input("the").ids, (std::vector<int32_t>{22, 4, 2}));
    put_text(folder / "tokenizer_config.json", R"({"src_lang": "xx"})");
    EXPECT_THROW(Tokenizer::load(folder.path()), Error);
  }
}

TEST(Legacy, LanguagesOfMbartAndNllbStandBehindThePieces) {
  const TemporaryFolder folder;
  const auto loaded = [&](bool bpe, const std::string& config) {
    put_text(folder / "sentencepiece.bpe.model", small_model(bpe));
    put_text(folder / "tokenizer_config.json", config);
    return Tokenizer::load(folder.path());
  };
  const Tokenizer fifty = loaded(false, R"({"tokenizer_class": "MBart50TokenizerFast", "src_lang": "de_DE"})");
  EXPECT_EQ(fifty.encode_input("the").ids, (std::vector<int32_t>{18, 4, 2}));
  EXPECT_EQ(fifty.id("<mask>"), 16 + 52);
  const Tokenizer first = loaded(false, R"({"tokenizer_class": "MBartTokenizer"})");
  EXPECT_EQ(first.encode_input("the").ids, (std::vector<int32_t>{4, 2, 19}));
  EXPECT_EQ(first.id("<mask>"), 16 + 25);
  const Tokenizer nllb = loaded(true, R"({"tokenizer_class": "NllbTokenizer"})");
  EXPECT_EQ(nllb.encode_input("the dog").ids, (std::vector<int32_t>{62, 4, 7, 14, 13, 2}));
  EXPECT_EQ(nllb.id("ace_Arab"), 16);
  EXPECT_EQ(nllb.id("<mask>"), 16 + 202);
  const Tokenizer legacy =
      loaded(true, R"({"tokenizer_class": "NllbTokenizer", "legacy_behaviour": true, "src_lang": "deu_Latn"})");
  EXPECT_EQ(legacy.encode_input("the").ids, (std::vector<int32_t>{4, 2, 57}));
  EXPECT_THROW(loaded(false, R"({"tokenizer_class": "MBartTokenizer", "src_lang": "de"})"), Error);
}

TEST(Legacy, BrokenModelsAreRefused) {
  const std::string good = small_model(false);
  for (size_t size = 0; size < good.size(); ++size) {
    try {
      detail::read_piece_model(std::string_view(good).substr(0, size), "model");
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("model: ")) << error.what();
    }
  }
  for (const std::string& bad : {std::string("\x0a\xff\xff\xff\xff\x7f"), std::string("\x0f"), std::string(11, '\x80'),
                                 piece("", 1), piece("\xff", 1), piece("a", 1) + piece("a", 2), piece("a", 1, 9)})
    EXPECT_THROW(detail::read_piece_model(bad, "model"), Error);
}

}  // namespace
}  // namespace mh
