// Cells, names and bands.
#include "cli/verbs/heat_map.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace mh::cli {

namespace {

constexpr int kNarrowest = 3;
constexpr int kLongestName = 16;
constexpr int kUsualWidth = 80;  // of a terminal that does not tell

struct Rgb {
  float r, g, b;
};
// From the dark of a terminal to a bright yellow, each step brighter than the last: readable without seeing colours.
constexpr std::array<Rgb, 6> kRamp = {
    {{20, 20, 38}, {64, 30, 110}, {140, 41, 129}, {222, 73, 104}, {254, 159, 109}, {252, 253, 191}}};

Rgb colour(float weight) {
  // The root spreads the small weights apart: most are below a tenth.
  const float at = std::sqrt(std::clamp(weight, 0.0F, 1.0F)) * static_cast<float>(kRamp.size() - 1);
  const size_t from = std::min(static_cast<size_t>(at), kRamp.size() - 2);
  const float t = at - static_cast<float>(from);
  const Rgb &a = kRamp[from], &b = kRamp[from + 1];
  return {a.r + t * (b.r - a.r), a.g + t * (b.g - a.g), a.b + t * (b.b - a.b)};
}

std::string cell(float weight, Ink ink, int width) {
  const std::string blank(static_cast<size_t>(width), ' ');
  if (ink == Ink::shades) {
    const char* const shades[] = {" ", "░", "▒", "▓", "█"};
    const char* shade = shades[static_cast<int>(std::sqrt(std::clamp(weight, 0.0F, 1.0F)) * 4 + 0.5F)];
    std::string out;
    for (int n = 0; n < width; ++n) out += shade;
    return out;
  }
  const Rgb c = colour(weight);
  if (ink == Ink::colours_24bit) return fmt::format("\033[48;2;{:.0f};{:.0f};{:.0f}m{}", c.r, c.g, c.b, blank);
  const auto step = [](float x) { return x < 48 ? 0 : x < 115 ? 1 : static_cast<int>((x - 35) / 40); };
  return fmt::format("\033[48;5;{}m{}", 16 + 36 * step(c.r) + 6 * step(c.g) + step(c.b), blank);
}

// The code point at `at`, which moves past it. The text is whole UTF-8.
uint32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t n) { return n < text.size() ? static_cast<unsigned char>(text[n]) : 0U; };
  const uint32_t first = byte(at);
  const int more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  uint32_t character = more == 0 ? first : first & (0x3FU >> more);
  for (int n = 1; n <= more; ++n) character = character << 6 | (byte(at + static_cast<size_t>(n)) & 0x3F);
  at += static_cast<size_t>(more) + 1;
  return character;
}

int character_width(uint32_t character) {
  const auto within = [&](uint32_t low, uint32_t high) { return character >= low && character <= high; };
  if (character < 0x20 || character == 0x7F || within(0x300, 0x36F) || within(0x200B, 0x200F) || within(0xFE00, 0xFE0F))
    return 0;
  const bool wide = within(0x1100, 0x115F) || within(0x2E80, 0xA4CF) || within(0xAC00, 0xD7A3) ||
                    within(0xF900, 0xFAFF) || within(0xFE30, 0xFE4F) || within(0xFF00, 0xFF60) ||
                    within(0xFFE0, 0xFFE6) || within(0x1F300, 0x1FAFF) || within(0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

// The longest name with which the margin, a space and one column fit: both may be as wide as a name and its "…".
int longest_name(int width) { return std::clamp((width - 1) / 2 - 1, 1, kLongestName); }

// Without what moves a cursor, and cut where it is long.
std::string name_of(std::string_view text, int longest) {
  std::string out;
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int own = character_width(next_character(text, at));
    if (own == 0 && static_cast<unsigned char>(text[begin]) < 0x80) continue;
    if (width + own > longest) return out + "…";
    out += text.substr(begin, at - begin);
    width += own;
  }
  return out;
}

std::string padding(int have, int want) { return std::string(static_cast<size_t>(std::max(0, want - have)), ' '); }

struct Column {
  std::string name;
  int width;
};

// Columns [begin, end) that fit; at least one.
size_t band_end(const std::vector<Column>& columns, size_t begin, int room) {
  size_t end = begin;
  for (int used = 0; end < columns.size(); ++end) {
    used += columns[end].width + 1;
    if (used > room + 1 && end > begin) break;
  }
  return end;
}

}  // namespace

Ink ink_of_stdout() {
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if (isatty(STDOUT_FILENO) != 1 || (none && *none) || !terminal || std::strcmp(terminal, "dumb") == 0)
    return Ink::shades;
  const char* colours = std::getenv("COLORTERM");
  const bool many = colours && (std::strcmp(colours, "truecolor") == 0 || std::strcmp(colours, "24bit") == 0);
  return many ? Ink::colours_24bit : Ink::colours_256;
}

int width_of_stdout() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const long told = columns ? std::strtol(columns, nullptr, 10) : 0;
  return told > 0 && told <= 10000 ? static_cast<int>(told) : kUsualWidth;
}

int shown_width(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) width += character_width(next_character(text, at));
  return width;
}

std::string draw(const HeatMap& map, Ink ink, int width) {
  const int longest = longest_name(width);
  std::vector<Column> columns;
  for (const std::string& name : map.columns) {
    const std::string shown = name_of(name, longest);
    columns.push_back({shown, std::max(kNarrowest, shown_width(shown))});
  }
  std::vector<std::string> rows;
  int margin = 0;
  for (const std::string& name : map.rows) {
    rows.push_back(name_of(name, longest));
    margin = std::max(margin, shown_width(rows.back()));
  }
  const char* const after = ink == Ink::shades ? "" : "\033[0m";
  std::string out;
  for (size_t begin = 0; begin < columns.size();) {
    const size_t end = band_end(columns, begin, width - margin - 1);
    std::string heading = padding(0, margin);
    for (size_t c = begin; c < end; ++c)
      heading += " " + columns[c].name + padding(shown_width(columns[c].name), columns[c].width);
    heading.erase(heading.find_last_not_of(' ') + 1);
    out += heading + "\n";
    for (size_t r = 0; r < rows.size(); ++r) {
      std::string line = padding(shown_width(rows[r]), margin) + rows[r];
      for (size_t c = begin; c < end; ++c)
        line.append(" ").append(cell(map.weights[r][c], ink, columns[c].width)).append(after);
      if (ink == Ink::shades) line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    begin = end;
    if (begin < columns.size()) out += "\n";
  }
  return out;
}

}  // namespace mh::cli
