// Text as metrics see it: code points, white space, the tokenisers of sacreBLEU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh::detail {

// What is no UTF-8 becomes U+FFFD, one for each longest part of a character, as in Python's errors="replace".
std::u32string code_points(std::string_view text);

// Code points to UTF-8.
std::string utf8(const std::u32string& text);

// The lower case of the Unicode standard, in no language's way.
std::string lower_case(std::string_view text);

// What Python's str.split() takes for white space.
bool is_space(char32_t c);
std::vector<std::u32string> split(const std::u32string& text);

// Python's string.punctuation.
bool is_ascii_punctuation(char32_t c);

// The tokens of a line by the tokeniser of that name of sacreBLEU 2.6.
std::vector<std::u32string> tokens_13a(std::u32string line);
std::vector<std::u32string> tokens_zh(const std::u32string& line);
std::vector<std::u32string> tokens_intl(const std::u32string& line);
std::vector<std::u32string> tokens_char(const std::u32string& line);

}  // namespace mh::detail
