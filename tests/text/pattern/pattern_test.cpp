// Patterns: the matches of Oniguruma (golden/make_patterns.py), what is refused, and time.
#include "multihead/text/pattern/pattern.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/text/tokenizer.h"

namespace mh::detail {
namespace {

using nlohmann::json;

std::vector<json> pattern_rows() {
  std::ifstream file(MH_TEST_DATA "/text/golden/patterns.jsonl", std::ios::binary);
  std::vector<json> out;
  for (std::string line; std::getline(file, line);) out.push_back(json::parse(line));
  return out;
}

// What a Split leaves, as offsets in code points.
json split_parts(const Pattern& pattern, const std::string& text, bool with_matches) {
  Encoded spans;
  const auto add = [&](size_t begin, size_t end) {
    if (begin < end) spans.offsets.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  };
  size_t from = 0;
  pattern.each_match(text, [&](size_t begin, size_t end) {
    add(from, begin);
    if (with_matches) add(begin, end);
    from = end;
  });
  add(from, text.size());
  spans.sequences.resize(spans.offsets.size());
  count_in_code_points(spans, text);
  json out = json::array();
  for (const TextSpan& span : spans.offsets) out.insert(out.end(), {span.begin, span.end});
  return out;
}

TEST(Pattern, MatchesAreThoseOfOniguruma) {
  const std::vector<json> rows = pattern_rows();
  ASSERT_GE(rows.size(), 40u);
  for (const json& row : rows) {
    const Pattern pattern(row.at(0).get<std::string>(), "x");
    for (const json& one : row.at(1)) {
      EXPECT_EQ(split_parts(pattern, one.at(0), true), one.at(1)) << row.at(0) << "\n" << one.at(0).dump();
      EXPECT_EQ(split_parts(pattern, one.at(0), false), one.at(2)) << row.at(0) << "\n" << one.at(0).dump();
    }
  }
}

TEST(Pattern, WhatIsNotDoneIsNamed) {
  const auto refusal = [](const std::string& source) {
    try {
      Pattern(source, "file: pattern");
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("file: pattern")) << error.what();
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("a"), "");
  for (const auto& [source, named] :
       std::vector<std::pair<std::string, std::string>>{{"^a", "\"^\""},
                                                        {"a$", "\"$\""},
                                                        {"\\ba", "\\\\b"},
                                                        {"(?<=a)b", "(?<="},
                                                        {"(a)\\1", "\\\\1"},
                                                        {"\\p{Klingon}", "Klingon"},
                                                        {"a{2}+", "{2}+"},
                                                        {"[[:alpha:]]", "[:"},
                                                        {"(?i:é)", "beyond ASCII"},
                                                        {"(?i:ss)", "ss"},
                                                        {"(?s)a", "(?s)"},
                                                        {"(a?)*", "may be empty"},
                                                        {"a*", "nothing at all"},
                                                        {"(?:(?:a{900}){900}){900}", "this large"}})
    EXPECT_NE(refusal(source).find(named), std::string::npos) << source << ": " << refusal(source);
  for (const std::string source : {"", "(", ")", "[", "[a", "(a", "a{3,2}", "\\", "\\p", "\\p{L", "[z-a]", "[]", "a)"})
    EXPECT_NE(refusal(source), "") << source;
  EXPECT_NE(refusal(std::string(100, '(') + "a" + std::string(100, ')')).find("in one another"), std::string::npos);
}

TEST(Pattern, KnownOnesTakeTimeLinearInTheText) {
  const std::vector<json> rows = pattern_rows();
  for (size_t i = 0; i < 7; ++i) {
    const Pattern pattern(rows.at(i).at(0).get<std::string>(), "x");
    for (const std::string unit :
         {"a", "A", " ", "1", "!", "\n", " \n", "'", "A1 ", "你", "e\xcc\x81", "\xcc\x81", "  \t", "'S"}) {
      std::string text;
      while (text.size() < 200000) text += unit;
      size_t covered = 0;
      pattern.each_match(text + "b",
                         [&](size_t begin, size_t end) { covered += end - begin; });  // too many steps throw
      EXPECT_GT(covered, 0u) << rows.at(i).at(0) << unit;
    }
  }
}

TEST(Pattern, AnotherStopsWhenItTakesTooLong) {
  const Pattern pattern("(?:a|aa)+b", "file");
  EXPECT_THROW(pattern.each_match(std::string(200, 'a'), [](size_t, size_t) {}), Error);
}

}  // namespace
}  // namespace mh::detail
