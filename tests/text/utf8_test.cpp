// Well-formed UTF-8, and where it ends.
#include "multihead/text/unicode/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace mh {
namespace {

TEST(Utf8, WellFormedTextHasNoError) {
  for (const std::string text : {"", "plain", "é", "€", "😀", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"})
    EXPECT_EQ(utf8_error(text), std::nullopt) << text;
  EXPECT_EQ(utf8_error(std::string("a\0b", 3)), std::nullopt);
}

TEST(Utf8, TheFirstFaultIsFound) {
  const std::string whole(70, 'a');  // past a vector's width
  const std::pair<std::string, size_t> broken[] = {
      {"\xff", 0},
      {"\x80", 0},
      {"ab\xc3", 2},            // cut off
      {"\xe2\x82", 0},          // cut off
      {"é\xe2\x82x", 2},        // cut off amid the text
      {"\xc0\x80", 0},          // overlong
      {"\xe0\x80\x80", 0},      // overlong
      {"a\xed\xa0\x80", 1},     // a surrogate
      {"\xf4\x90\x80\x80", 0},  // past U+10FFFF
      {whole + "\xfe" + whole + "\xfe", 70},
  };
  for (const auto& [text, at] : broken) EXPECT_EQ(utf8_error(text), at);
}

TEST(Utf8, WhatIsBrokenIsDroppedAsInPython) {
  const std::pair<std::string, std::string> broken[] = {
      {"", ""},
      {"für 😀", "für 😀"},
      {"caf\xe9 na\xefve", "caf nave"},
      {"a\xff\xfe!", "a!"},
      {"\xe2\x82", ""},                // breaks off
      {"\xe2\x82x\xf0\x9f\x98", "x"},  // amid the text and at its end
      {"\xed\xa0\x80", ""},            // a surrogate
      {"\xc0\x80", ""},
      {"\uFFFD stays", "\uFFFD stays"},  // it was there
  };
  for (const auto& [bytes, text] : broken) EXPECT_EQ(whole_utf8(bytes), text) << bytes;
}

}  // namespace
}  // namespace mh
