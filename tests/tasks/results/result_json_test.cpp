// JSON of results: every key in its order, characters in place of bytes.
#include "multihead/tasks/results/result_json.h"

#include <gtest/gtest.h>

namespace mh {
namespace {

TEST(ResultJson, CharactersAreCountedNotBytes) {
  EXPECT_EQ(characters_before("Köln", 0), 0);
  EXPECT_EQ(characters_before("Köln", 3), 2);
  EXPECT_EQ(characters_before("a😀b", 5), 2);
  const Tagging found{.entities = {{.label = "LOC", .begin = 4, .end = 9, .score = 0.5F}}};
  EXPECT_EQ(to_json(found, "Zü Köln"), R"([{"begin":3,"end":7,"label":"LOC","score":0.5,"text":"Köln"}])");
  EXPECT_EQ(to_json(Tagging(), "Zü"), "[]");
  EXPECT_EQ(to_json(Answer{.text = "Köln", .begin = 4, .end = 9, .score = 0.25F}, "Zü Köln"),
            R"({"answer":"Köln","score":0.25,"begin":3,"end":7})");
}

TEST(ResultJson, ScoresStandFromTheHighestDown) {
  const Classification one{.label = "b", .score = 0.5F, .scores = {0.25F, 0.5F, 0.25F}};
  const std::vector<std::string> labels{"c", "b", "a"};
  EXPECT_EQ(to_json(one), R"({"label":"b","score":0.5})");
  EXPECT_EQ(to_json(one, labels), R"({"label":"b","score":0.5,"scores":{"b":0.5,"c":0.25,"a":0.25}})");
}

TEST(ResultJson, WhatIsWrittenIsCountedInTokens) {
  Continuation written;
  written.text = "a \"b\"\xff";
  written.token_scores = {-1, -2, -3};
  written.score = -6;
  written.ended = true;
  EXPECT_EQ(to_json(written, "p\n", 7), R"({"line":7,"prompt":"p\n","text":"a \"b\")"
                                        "\xef\xbf\xbd"
                                        R"(","tokens":3,"ended":true,"score":-6.0})");
  Translation summary{.source_tokens = 9, .cut = true};
  summary.candidates.resize(2);
  summary.candidates[0].text = "short";
  summary.candidates[0].token_scores = {-0.5F};
  EXPECT_EQ(summary_to_json(summary, 2),
            R"({"line":2,"text":"short","tokens":1,"source_tokens":9,"cut":true,"ended":false,"score":0.0})");
  EXPECT_EQ(to_json(summary.candidates[0], {.line = 3, .rank = 2, .cut = true}),
            R"({"line":3,"rank":2,"text":"short","score":0.0,"cut":true})");
}

TEST(ResultJson, EveryGapHasItsList) {
  const Filled found{.gaps = {{.fillings = {{.token = "x", .id = 3, .score = 0.5F, .text = "x y"}}}, {}}};
  EXPECT_EQ(to_json(found), R"([[{"token":"x","id":3,"score":0.5,"text":"x y"}],[]])");
}

}  // namespace
}  // namespace mh
