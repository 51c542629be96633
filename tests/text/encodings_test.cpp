// BPE of every kind, offsets, words and windows, against Hugging Face's tokenizers (golden/make_encodings.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/text/tokenizer.h"

namespace mh {
namespace {

using nlohmann::json;

std::vector<json> encodings_rows() {
  std::ifstream file(MH_TEST_DATA "/text/golden/encodings.jsonl", std::ios::binary);
  std::vector<json> out;
  for (std::string line; std::getline(file, line);) out.push_back(json::parse(line));
  return out;
}

json flat(const std::vector<TextSpan>& offsets) {
  json out = json::array();
  for (const TextSpan& span : offsets) {
    out.push_back(span.begin);
    out.push_back(span.end);
  }
  return out;
}

json shown(Encoded encoded, const std::string& first, const std::string& second) {
  count_in_code_points(encoded, first);
  count_in_code_points(encoded, second, 1);
  return {encoded.ids, flat(encoded.offsets), encoded.words, encoded.sequences, encoded.types};
}

json windows_of(const Tokenizer& tokenizer, const std::string& text, const std::string& other, int64_t number) {
  constexpr Truncate kStrategies[] = {Truncate::longest_first, Truncate::only_first, Truncate::only_second};
  json out = json::array();
  try {
    for (const Encoded& window : tokenizer.encode_pair_windows(
             text, other, {.max_length = 9 + number % 5, .truncate = kStrategies[number % 3], .stride = number % 3})) {
      const json all = shown(window, text, other);
      out.push_back({all[0], all[1]});
    }
  } catch (const Error&) {
    return nullptr;
  }
  return out;
}

TEST(Encodings, IdsOffsetsWordsAndWindowsAreTheSame) {
  const std::vector<json> rows = encodings_rows();
  ASSERT_GE(rows.size(), 30u);
  size_t refused = 0;
  for (const json& row : rows) {
    const std::string file = row.at("file").dump();
    const Tokenizer tokenizer = Tokenizer::parse(file, "golden");
    int64_t number = 0;
    for (const json& one : row.at("cases")) {
      const std::string text = one.at(0), other = one.at(1);
      json about = row.at("file");
      about.erase("model");
      const std::string where = about.dump().substr(0, 1200) + "\n" + one.at(0).dump() + one.at(1).dump();
      const Encoded plain = tokenizer.encode_input(text, {.add_special = false});
      EXPECT_EQ(json({shown(plain, text, "")[0], shown(plain, text, "")[1], plain.words}), one.at(2)) << where;
      EXPECT_EQ(tokenizer.decode(plain.ids), one.at(3).get<std::string>()) << where;
      EXPECT_EQ(shown(tokenizer.encode_pair(text, other), text, other), one.at(4)) << where;
      EXPECT_EQ(windows_of(tokenizer, text, other, number++), one.at(5)) << where;
      refused += one.at(5).is_null() ? 1 : 0;
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(Encodings, EveryWindowHoldsTheStrideOfTheOneBefore) {
  const Tokenizer tokenizer = Tokenizer::parse(encodings_rows().at(0).at("file").dump(), "golden");
  const std::string text = "Tom's dog is here, isn't he? The dog is not Tom's.";
  const std::vector<Encoded> windows = tokenizer.encode_windows(text, {.max_length = 10, .stride = 3});
  ASSERT_GT(windows.size(), 2u);
  for (size_t i = 1; i < windows.size(); ++i) {
    const std::vector<int32_t>&before = windows[i - 1].ids, &here = windows[i].ids;
    EXPECT_EQ(before.size(), 10u);
    EXPECT_EQ(std::vector(before.end() - 4, before.end() - 1), std::vector(here.begin() + 1, here.begin() + 4));
  }
  EXPECT_EQ(windows.back().offsets.end()[-2].end, text.size());
  EXPECT_THROW(tokenizer.encode_windows(text, {.max_length = 10, .stride = 8}), Error);
  EXPECT_THROW(tokenizer.encode_windows(text, {.max_length = -1}), Error);
  EXPECT_THROW(tokenizer.encode_input(text, {.max_length = 5, .truncate = Truncate::only_second}), Error);
}

TEST(Encodings, OffsetsOfBrokenBytesAreThoseOfTheBytes) {
  for (const size_t row : {0u, 8u, 16u}) {
    const Tokenizer tokenizer = Tokenizer::parse(encodings_rows().at(row).at("file").dump(), "golden");
    const std::string text = "Tom \xff\xc3 dog";
    const Encoded broken = tokenizer.encode_input(text, {.add_special = false});
    const Encoded whole = tokenizer.encode_input("Tom \xef\xbf\xbd\xef\xbf\xbd dog", {.add_special = false});
    EXPECT_EQ(broken.ids, whole.ids);
    ASSERT_FALSE(broken.ids.empty());
    EXPECT_EQ(broken.offsets.back().end, text.size());
    for (const TextSpan& span : broken.offsets) EXPECT_TRUE(span.begin <= span.end && span.end <= text.size());
  }
}

}  // namespace
}  // namespace mh
