// A matrix of weights as a picture of text: rows down, columns across.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh::cli {

enum class Ink { shades, colours_256, colours_24bit };

// What stdout can show: shades unless it is a terminal and NO_COLOR is not set.
Ink ink_of_stdout();
// Columns of the terminal at stdout; where it is none, COLUMNS of the environment, or 80.
int width_of_stdout();

// Columns a text takes on a terminal.
int shown_width(std::string_view text);

struct HeatMap {
  std::vector<std::string> rows{}, columns{};  // their names
  std::vector<std::vector<float>> weights{};   // [row][column], 0 to 1
};
// Columns that do not fit `width` follow below, in bands; long names are cut. From a width of 7 on no line is wider.
std::string draw(const HeatMap& map, Ink ink, int width);

}  // namespace mh::cli
