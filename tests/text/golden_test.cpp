// Against Hugging Face's tokenizers: the same files, ids and texts (tests/text/golden).
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {
namespace {

using nlohmann::json;

std::string golden(const std::string& name) { return std::string(MH_TEST_DATA "/text/golden/") + name; }

std::string content(const std::string& name) {
  std::ifstream file(golden(name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const std::string& name) {
  std::ifstream file(golden(name), std::ios::binary);
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

constexpr const char* kNames[] = {"plain", "folded", "composed", "spaced"};

TEST(Golden, IdsAndDecodedTextsAreTheSame) {
  const std::vector<std::string> rows = lines_of("encoded.jsonl");
  ASSERT_GE(rows.size(), 400u);
  for (const std::string name : kNames) {
    const Tokenizer tokenizer = Tokenizer::load(golden(name + ".json"));
    for (const std::string& row : rows) {
      const json expected = json::parse(row);
      const auto ids = expected.at(name).at("ids").get<std::vector<int32_t>>();
      const auto text = expected.at("text").get<std::string>();
      EXPECT_EQ(tokenizer.encode(text), ids) << name << ": " << expected.at("text");
      EXPECT_EQ(tokenizer.decode(ids), expected.at(name).at("decoded").get<std::string>()) << name;
    }
  }
}

TEST(Golden, TrainingWritesTheSameFile) {
  const std::vector<std::string> lines = lines_of("lines.txt");
  ASSERT_EQ(lines.size(), 800u);
  EXPECT_EQ(train_bpe(lines, {.vocabulary = 1000}).json(), content("plain.json"));
  EXPECT_EQ(
      train_bpe(lines,
                {.vocabulary = 500, .prefix_space = false, .lowercase = true, .normalisation = Normalisation::nfkc})
          .json(),
      content("folded.json"));
  EXPECT_EQ(train_bpe(lines, {.vocabulary = 300, .normalisation = Normalisation::nfc}).json(),
            content("composed.json"));
}

TEST(Golden, AFileIsWrittenAsItWasRead) {
  for (const std::string name : kNames)
    EXPECT_EQ(Tokenizer::load(golden(name + ".json")).json(), content(name + ".json")) << name;
}

TEST(Golden, MergesInTheOlderSpellingMeanTheSame) {
  json file = json::parse(content("plain.json"));
  for (json& merge : file.at("model").at("merges"))
    merge = merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>();
  EXPECT_EQ(Tokenizer::parse(file.dump(), "older").json(), content("plain.json"));
}

}  // namespace
}  // namespace mh
