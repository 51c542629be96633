// tokenizer.json: what is refused and in which words, and how a file is replaced.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/error.h"
#include "multihead/text/tokenizer.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using Json = nlohmann::ordered_json;

Json small_file() {
  return Json::parse(
      train_bpe({"the the the dog", "a dog"}, {.vocabulary = 264, .specials = {"<pad>", "</s>"}}).json());
}

// The sentence with which the file is refused; empty where it is taken.
std::string refusal(const std::string& json) {
  try {
    Tokenizer::parse(json, "tokenizer 'x'");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_refused(const Json& file, const std::string& because) {
  const std::string sentence = refusal(file.dump());
  EXPECT_TRUE(sentence.starts_with("tokenizer 'x': ")) << sentence;
  EXPECT_NE(sentence.find(because), std::string::npos) << sentence << "\nexpected: " << because;
  EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
}

// The file with `change` made to the place that `pointer` names.
Json with(const std::string& pointer, const Json& value) {
  Json file = small_file();
  file[Json::json_pointer(pointer)] = value;
  return file;
}

TEST(TokenizerFile, TheFileItselfIsTaken) { EXPECT_EQ(refusal(small_file().dump()), ""); }

TEST(TokenizerFile, WhatIsNoJsonIsRefused) {
  for (const std::string text : {"", "{", "[1,2", "{\"version\": \"1.0\", }", "\xff", "nul", "{}{}"})
    EXPECT_NE(refusal(text).find("no JSON"), std::string::npos) << text << ": " << refusal(text);
  EXPECT_NE(refusal(std::string(100000, '[')).find("no JSON"), std::string::npos);
  for (const std::string text : {"[]", "1", "null", "\"a\""})
    EXPECT_NE(refusal(text).find("no JSON object"), std::string::npos) << text;
  EXPECT_NE(refusal("{}").find("'version' is missing"), std::string::npos);
}

TEST(TokenizerFile, WhatWouldChangeIdsIsRefused) {
  expect_refused(with("/version", "2.0"), "\"2.0\" is not supported");
  expect_refused(with("/model/type", "WordPiece"), "model: the field \"dropout\" is unknown");
  expect_refused(with("/model/dropout", 0.1), "dropout");
  expect_refused(with("/model/continuing_subword_prefix", "##"), "which is shorter than the prefix");
  expect_refused(with("/model/surprise", 1), "the field \"surprise\" is unknown");
  expect_refused(with("/pre_tokenizer/type", "Surprise"), "\"Surprise\" is not supported; expected BertPreTokenizer");
  expect_refused(with("/post_processor", {{"type", "TemplateProcessing"}}), "'special_tokens' is missing");
}

TEST(TokenizerFile, AByteLevelBpeThatNeedsStepsGivesTheSameIdsByThem) {
  const std::string text = "the dog's </s> Übér\t 12 the";
  const Tokenizer plain = Tokenizer::parse(small_file().dump(), "plain");
  EXPECT_EQ(plain.encode_input(text, {.find_special = false}).ids, plain.encode(text));
  for (const Json& file : {with("/truncation", {{"max_length", 5}}), with("/padding", {{"pad_id", 0}}),
                           with("/model/ignore_merges", true), with("/added_tokens/0/lstrip", true)}) {
    const Tokenizer steps = Tokenizer::parse(file.dump(), "steps");
    EXPECT_EQ(steps.json(), file.dump());
    EXPECT_EQ(steps.encode(text), plain.encode(text)) << file.dump().substr(0, 200);
    EXPECT_EQ(steps.decode(steps.encode(text)), text);
  }
}

TEST(TokenizerFile, NormalisersMayHaveAnyOrder) {
  const Json nfc = {{"type", "NFC"}}, lower = {{"type", "Lowercase"}}, space = {{"type", "Prepend"}, {"prepend", " "}};
  const auto sequence = [](const Json& steps) { return Json{{"type", "Sequence"}, {"normalizers", steps}}; };
  for (const Json& steps : {Json::array({nfc, lower, space}), Json::array({lower, nfc}),
                            Json::array({nfc, space, lower}), Json::array({sequence(Json::array({nfc})), lower})}) {
    const Tokenizer tokenizer = Tokenizer::parse(with("/normalizer", sequence(steps)).dump(), "x");
    EXPECT_EQ(tokenizer.encode("THE e\u0301"), tokenizer.encode("the \u00e9"));
  }
  EXPECT_EQ(refusal(with("/normalizer", sequence(Json::array())).dump()), "");
  expect_refused(with("/normalizer", {{"type", "Surprise"}}), "\"Surprise\" is not supported");
}

TEST(TokenizerFile, WrongTypesAreNamed) {
  expect_refused(with("/version", 1), "'version' is of the wrong type; expected a string");
  expect_refused(with("/added_tokens", 5), "'added_tokens' is of the wrong type; expected an array");
  expect_refused(with("/added_tokens/0", "x"), "no JSON object");
  expect_refused(with("/added_tokens/0/id", "0"), "expected a whole number");
  expect_refused(with("/model", 3), "model: this has no 'type'");
  expect_refused(with("/model/vocab", Json::array()), "'vocab' is of the wrong type; expected an object");
  expect_refused(with("/model/vocab/a", 1.5), "the id of \"a\" is not a whole number");
  expect_refused(with("/model/merges", Json::object()), "'merges' is of the wrong type; expected an array");
  expect_refused(with("/normalizer", "NFC"), "no 'type'");
  expect_refused(with("/pre_tokenizer/use_regex", 1), "expected true or false");
}

TEST(TokenizerFile, ContradictionsAreRefused) {
  const int64_t size = static_cast<int64_t>(small_file().at("model").at("vocab").size());
  expect_refused(with("/model/vocab/a", -1), "has the id -1");
  expect_refused(with("/model/vocab/a", int64_t{1} << 40), "has the id 1099511627776");
  expect_refused(with("/model/vocab/a", size), fmt::format("the token \"a\" has the id {}", size));
  expect_refused(with("/model/vocab/a", 5), "has the id 5");
  expect_refused(with("/added_tokens/0/id", 1), "the token \"<pad>\" has two ids, 0 and 1");
  expect_refused(with("/added_tokens/1/content", "never heard of"), "has the id 1");
  for (const Json& merge : {Json{"a"}, Json{"a", "b", "c"}, Json{1, 2}, Json("ab"), Json("a b c"), Json(7)})
    expect_refused(with("/model/merges/1", merge), "number 1 is not a pair of tokens");
  expect_refused(with("/model/merges/0", {"a", "nowhere"}), "number 0 needs the token \"nowhere\"");
  expect_refused(with("/model/merges/0", {"x", "y"}), "needs the token \"xy\"");
}

TEST(TokenizerFile, AFieldOrTokenTwiceIsRefused) {
  const std::string text = small_file().dump();
  const auto twice = [&](const std::string& field) {
    const size_t at = text.find(field);
    EXPECT_NE(at, std::string::npos);
    return refusal(std::string(text).insert(at, field));
  };
  EXPECT_NE(twice("\"version\":\"1.0\",").find("\"version\" stands there twice"), std::string::npos);
  EXPECT_NE(twice("\"!\":2,").find("\"!\" stands there twice"), std::string::npos);
}

TEST(TokenizerFile, AByteWithoutATokenVanishesAndNoTextBecomesASpecialOne) {
  Json file = small_file();
  file["model"]["vocab"].erase("Ġ");
  file["model"]["vocab"]["?!?"] = small_file()["model"]["vocab"]["Ġ"];
  file["model"]["merges"] = Json::array();
  const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "x");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("the dog")), "thedog");

  const auto special = [](const std::string& token) {
    Json made = small_file();
    made["added_tokens"].push_back({{"id", made["model"]["vocab"][token]}, {"content", token}, {"special", true}});
    return made;
  };
  expect_refused(special("a"), "the special token 'a' stands for byte 97");
  expect_refused(special("Ġthe"), "a merge makes the special token \"Ġthe\"");
}

TEST(TokenizerFile, HostileWordsStayOnOneLine) {
  expect_refused(with("/model/type", "a\nb" + std::string(1000, 'x')), "a\\nb");
  EXPECT_LT(refusal(with("/model/type", std::string(1000, 'x')).dump()).size(), 200u);
}

TEST(TokenizerFile, TokensOfNoBytesDecodeAsTheyAre) {
  Json file = small_file();
  const int64_t id = static_cast<int64_t>(file["model"]["vocab"].size());
  file["model"]["vocab"]["two words"] = id;
  EXPECT_EQ(Tokenizer::parse(file.dump(), "x").decode({static_cast<int32_t>(id)}), "two words");
}

TEST(TokenizerFile, SavedAndLoadedIsTheSame) {
  const TemporaryFolder folder;
  const std::string path = folder / "tokenizer.json";
  const Tokenizer tokenizer = train_bpe({"the the the dog"}, {.vocabulary = 270});
  put_text(path, "something else");
  tokenizer.save(path);
  const Tokenizer again = Tokenizer::load(path);
  EXPECT_EQ(again.json(), tokenizer.json());
  EXPECT_EQ(again.encode("the dog"), tokenizer.encode("the dog"));
  EXPECT_EQ(folder.files(), 1u);
}

TEST(TokenizerFile, SavedToAPipeItGoesThroughIt) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  const Tokenizer tokenizer = train_bpe({"a"}, {.vocabulary = 261});
  tokenizer.save(pipe);
  std::string text(1 << 16, 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, read(reader, text.data(), text.size()))));
  close(reader);
  EXPECT_EQ(text, tokenizer.json());
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(TokenizerFile, AFileThatCannotBeReadOrWrittenIsNamed) {
  const TemporaryFolder folder;
  const auto kind_of = [](auto&& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::internal;
  };
  const Tokenizer tokenizer = train_bpe({"a"});
  EXPECT_EQ(kind_of([&] { Tokenizer::load(folder / "none.json"); }), ErrorKind::io);
  EXPECT_EQ(kind_of([&] { Tokenizer::load(folder.path()); }), ErrorKind::io);
  EXPECT_EQ(kind_of([&] { tokenizer.save(folder / "none/x.json"); }), ErrorKind::io);
  EXPECT_EQ(kind_of([&] { tokenizer.save(folder.path()); }), ErrorKind::io);
  EXPECT_EQ(kind_of([&] { tokenizer.save("/dev/full/x"); }), ErrorKind::io);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + ".part"));
}

}  // namespace
}  // namespace mh
