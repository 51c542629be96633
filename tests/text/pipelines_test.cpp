// WordPiece, Unigram and WordLevel with their steps, against Hugging Face's tokenizers (golden/make_pipelines.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/text/tokenizer.h"
#include "multihead/text/unicode/code_set.h"
#include "tests/harness/rungs.h"

namespace mh {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

std::vector<json> golden_rows(const std::string& name) {
  std::ifstream file(std::string(MH_TEST_DATA "/text/golden/") + name, std::ios::binary);
  std::vector<json> out;
  for (std::string line; std::getline(file, line);) out.push_back(json::parse(line));
  return out;
}

TEST(Pipelines, IdsTypesAndDecodedTextsAreTheSame) {
  const std::vector<json> rows = golden_rows("pipelines.jsonl");
  ASSERT_GE(rows.size(), 30u);
  for (const json& row : rows) {
    const std::string file = row.at("file").dump();
    const Tokenizer tokenizer = Tokenizer::parse(file, "golden");
    EXPECT_EQ(tokenizer.json(), file);
    for (const json& one : row.at("cases")) {
      const std::string text = one.at(0), other = one.at(1), shown = file.substr(0, 900) + "\n" + one.at(0).dump();
      const Ids plain = one.at(2);
      EXPECT_EQ(tokenizer.encode(text), plain) << shown;
      EXPECT_EQ(tokenizer.decode(plain), one.at(3).get<std::string>()) << shown;
      EXPECT_EQ(tokenizer.encode_input(text).ids, one.at(4).get<Ids>()) << shown;
      const Encoded pair = tokenizer.encode_pair(text, other);
      EXPECT_EQ(pair.ids, one.at(5).get<Ids>()) << shown;
      EXPECT_EQ(pair.types, one.at(6).get<Ids>()) << shown;
      EXPECT_EQ(tokenizer.encode_pair(text, other, {.max_length = 9}).ids, one.at(7).get<Ids>()) << shown;
    }
  }
}

// The tokenizer of make_pipelines.py's spelled().
Tokenizer spelled(const json& row) {
  json pieces = json::array({json::array({"<unk>", -100.0})});
  for (int byte = 0; byte < 256; ++byte) pieces.push_back(json::array({fmt::format("<0x{:02X}>", byte), -50.0}));
  const json file = {{"version", "1.0"},
                     {"normalizer", row.at("normalizer")},
                     {"pre_tokenizer", row.at("pre_tokenizer")},
                     {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", pieces}, {"byte_fallback", true}}}};
  return Tokenizer::parse(file.dump(), "walk");
}

TEST(Pipelines, EveryCodePointIsTheSame) {
  const std::vector<json> rows = golden_rows("walks.jsonl");
  ASSERT_GE(rows.size(), 16u);
  for (const json& row : rows) {
    const Tokenizer tokenizer = spelled(row);
    const std::vector<std::string> hashes = row.at("hashes");
    // All of them in the release build; sanitized builds walk the first planes' blocks and a sample of the rest.
    const bool all = harness::cases(64) == 64;
    for (uint32_t block = 0; block < 0x110; ++block) {
      if (!all && block != 0 && block != 2 && block % 61 != 0) continue;
      uint64_t hash = 14695981039346656037u;
      for (uint32_t code = block * 4096; code < (block + 1) * 4096; ++code) {
        if (code >= 0xd800 && code < 0xe000) continue;
        std::string text = "a";
        detail::append_character(code, text);
        Ids ids = tokenizer.encode(text + text);
        ids.push_back(0xffff);
        for (const int32_t id : ids) hash = (hash ^ static_cast<uint64_t>(id)) * 1099511628211u;
      }
      EXPECT_EQ(fmt::format("{:x}", hash), hashes.at(block))
          << row.at("normalizer").dump() << row.at("pre_tokenizer").dump() << fmt::format(" U+{:x}", block * 4096);
    }
  }
}

TEST(Pipelines, WhatIsNotSupportedIsNamed) {
  const json good = golden_rows("pipelines.jsonl").at(0).at("file");
  const auto refusal = [&](const std::string& pointer, const json& value) {
    json file = good;
    file[json::json_pointer(pointer)] = value;
    try {
      Tokenizer::parse(file.dump(), "x");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("/normalizer", nullptr), "");
  for (const char* part : {"/normalizer", "/pre_tokenizer", "/post_processor", "/decoder", "/model"})
    EXPECT_NE(refusal(part, {{"type", "Surprise"}}).find("\"Surprise\" is not supported"), std::string::npos);
  const json regex = {{"type", "Replace"}, {"pattern", {{"Regex", "^ {2,}"}}}, {"content", " "}};
  EXPECT_NE(refusal("/normalizer", regex).find("\"^\" in the pattern"), std::string::npos);
  EXPECT_NE(refusal("/normalizer/surprise", 1).find("\"surprise\" is unknown"), std::string::npos);
  EXPECT_NE(refusal("/model/vocab/a", 100000).find("has the id 100000"), std::string::npos);
  EXPECT_NE(refusal("/added_tokens/0/content", "").find("is empty"), std::string::npos);
  EXPECT_NE(refusal("/post_processor/single/0/SpecialToken/id", "no").find("special_tokens"), std::string::npos);
}

TEST(Pipelines, SpecialTokensNeedRoom) {
  const Tokenizer tokenizer = Tokenizer::parse(golden_rows("pipelines.jsonl").at(0).at("file").dump(), "golden");
  EXPECT_EQ(tokenizer.encode_input("the dog", {.max_length = 2}).ids.size(), 2u);
  EXPECT_THROW(tokenizer.encode_input("the dog", {.max_length = 1}), Error);
}

}  // namespace
}  // namespace mh
