// The picture: cells under their names, bands that fit, no sign that moves the cursor.
#include "cli/verbs/heat_map.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace mh::cli {
namespace {

TEST(HeatMap, ShadesStandUnderTheirNames) {
  const HeatMap map{
      .rows = {"Das", "Über"}, .columns = {"The", "a", "weather"}, .weights = {{1, 0, 0}, {0.05F, 0.5F, 0.3F}}};
  EXPECT_EQ(draw(map, Ink::shades, 80),
            "     The a   weather\n"
            " Das ███\n"
            "Über ░░░ ▓▓▓ ▒▒▒▒▒▒▒\n");
}

TEST(HeatMap, ColumnsThatDoNotFitFollowBelow) {
  HeatMap map{.rows = {"x"}, .columns = {}, .weights = {{}}};
  for (int n = 0; n < 9; ++n) {
    map.columns.push_back("word" + std::to_string(n));
    map.weights[0].push_back(1);
  }
  const std::string out = draw(map, Ink::shades, 20);
  std::istringstream lines(out);
  size_t names = 0, bands = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(shown_width(line), 20) << line;
    bands += line.empty();
    for (int n = 0; n < 9; ++n) names += line.find("word" + std::to_string(n)) != std::string::npos;
  }
  EXPECT_EQ(names, 9u);
  EXPECT_EQ(bands, 2u);
  const std::string narrow = draw(map, Ink::shades, 1);  // too narrow for any: one a band
  EXPECT_EQ(std::count(narrow.begin(), narrow.end(), '\n'), 9 * 3 - 1);
}

TEST(HeatMap, NoLineIsWiderThanTheTerminal) {
  HeatMap map;
  for (const char* name : {"Donaudampfschifffahrt", "a", "日本語日本語日本語日本語", "</s>"}) {
    map.rows.emplace_back(name);
    map.columns.emplace_back(name);
    map.weights.push_back({1, 1, 1, 1});
  }
  for (int width = 7; width < 90; ++width) {
    std::istringstream lines(draw(map, Ink::shades, width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(shown_width(line), width) << width << ": " << line;
  }
  EXPECT_NE(draw(map, Ink::shades, 80).find("Donaudampfschiff…"), std::string::npos);
}

TEST(HeatMap, TheEnvironmentTellsTheWidthOfAPipe) {
  const char* before = std::getenv("COLUMNS");
  const std::string kept = before ? before : "";
  if (isatty(STDOUT_FILENO) == 1) GTEST_SKIP() << "stdout is a terminal and tells its own";
  setenv("COLUMNS", "57", 1);
  EXPECT_EQ(width_of_stdout(), 57);
  for (const char* nonsense : {"0", "-3", "x", "99999999999999999999"}) {
    setenv("COLUMNS", nonsense, 1);
    EXPECT_EQ(width_of_stdout(), 80) << nonsense;
  }
  unsetenv("COLUMNS");
  EXPECT_EQ(width_of_stdout(), 80);
  if (before) setenv("COLUMNS", kept.c_str(), 1);
}

TEST(HeatMap, ColoursEndWithTheirCell) {
  const HeatMap map{.rows = {"x"}, .columns = {"one"}, .weights = {{1}}};
  EXPECT_EQ(draw(map, Ink::colours_24bit, 80), "  one\nx \033[48;2;252;253;191m   \033[0m\n");
  EXPECT_EQ(draw(map, Ink::colours_256, 80), "  one\nx \033[48;5;229m   \033[0m\n");
}

TEST(HeatMap, NamesCannotMoveTheCursor) {
  const HeatMap map{.rows = {"a\033[2Jb\n"}, .columns = {"\t\x7f", "averyveryverylongnameindeed"}, .weights = {{0, 0}}};
  EXPECT_EQ(draw(map, Ink::shades, 80), "          averyveryverylon…\na[2Jb\n");
}

TEST(HeatMap, CountsColumnsNotBytes) {
  EXPECT_EQ(shown_width("für"), 3);
  EXPECT_EQ(shown_width("日本"), 4);
  EXPECT_EQ(shown_width("e\u0301"), 1);
  EXPECT_EQ(shown_width(""), 0);
}

}  // namespace
}  // namespace mh::cli
