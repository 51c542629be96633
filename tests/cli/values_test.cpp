// What a flag's value may be, and what is said of one that does not fit.
#include "cli/values.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace mh::cli {
namespace {

std::string said(const CLI::Validator& fits, std::string text) { return fits(text); }

TEST(Values, WholeNumbersFromTheLeastToTheMost) {
  for (const char* text : {"1", "7", "9"}) EXPECT_EQ(said(whole_number(1, 9), text), "");
  for (const char* text : {"0", "10", "-1", "x", "", "3.0", "3 ", "99999999999999999999"})
    EXPECT_EQ(said(whole_number(1, 9), text),
              "'" + std::string(text) + "' does not fit; expected a whole number from 1 to 9");
  EXPECT_EQ(said(whole_number(2), "1"), "'1' does not fit; expected a whole number, at least 2");
}

TEST(Values, NumbersThatAreFinite) {
  for (const char* text : {"0", "0.5", "1e-3", "1"}) EXPECT_EQ(said(number(0, 1), text), "");
  for (const char* text : {"1.01", "-0.1", "nan", "inf", "0,5", ""})
    EXPECT_EQ(said(number(0, 1), text), "'" + std::string(text) + "' does not fit; expected a number from 0 to 1");
  EXPECT_EQ(said(number_above(0, 1), "1"), "");
  for (const char* text : {"0", "1.01", "nan"})
    EXPECT_EQ(said(number_above(0, 1), text),
              "'" + std::string(text) + "' does not fit; expected a number above 0, at most 1");
}

TEST(Values, OneOfSomeWords) {
  EXPECT_EQ(said(one_of({"f32", "bf16"}), "bf16"), "");
  EXPECT_EQ(said(one_of({"f32", "bf16"}), "BF16"), "'BF16' does not fit; expected one of f32, bf16");
}

TEST(Values, LimitsAreForTheHelp) {
  EXPECT_EQ(whole_number(1, 9).get_description(), "1 to 9");
  EXPECT_EQ(whole_number(0).get_description(), "at least 0");
  EXPECT_EQ(number(0.01, 600).get_description(), "0.01 to 600");
  EXPECT_EQ(number_above(0, 1).get_description(), "above 0, at most 1");
  EXPECT_EQ(one_of({"f32", "bf16"}).get_description(), "f32, bf16");
}

}  // namespace
}  // namespace mh::cli
