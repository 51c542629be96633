// Text for whoever counts lines and columns.
#pragma once

#include <algorithm>
#include <string>

namespace mh::cli {

// Line breaks and tabs become spaces.
inline std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return text;
}

}  // namespace mh::cli
