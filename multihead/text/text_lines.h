// The rule by which every verb reads lines of text: what a text may begin with, where a line ends, and what happens to
// a line that is not UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mh {

// The text behind a UTF-8 byte order mark, all of it where there is none. Throws: unsupported where it begins with the
// mark of UTF-16 or UTF-32; `name` stands in the sentence.
std::string_view text_after_mark(std::string_view text, const std::string& name);

// Takes the first line off `text`: without its end, "\n" or "\r\n".
std::string_view next_line(std::string_view& text);

// Counts the lines that are not UTF-8. They are skipped and reported: no reader guesses at their encoding, and none
// puts a character of its own (U+FFFD) in place of a byte.
class BrokenLines {
 public:
  // Whether the line that holds `text` is to be skipped. Numbers count from 1; `before`: bytes of the line before it.
  bool skips(std::string_view text, int64_t number, size_t before = 0);

  int64_t count() const { return count_; }
  int64_t first_line() const { return first_line_; }
  // "not UTF-8 at byte 4; …": why, and what helps. The byte is of the first such line, from 1.
  std::string reason() const;
  // "NAME: skipped 2 of 10 lines (the first is line 7): not UTF-8 …"; empty where none was.
  std::string sentence(std::string_view name, int64_t lines) const;

 private:
  int64_t count_ = 0, first_line_ = 0;
  size_t first_byte_ = 0;
};

// "NAME: skipped 2 of 10 lines (the first is line 7): WHY", as every reader says it.
std::string skipped_sentence(std::string_view name, int64_t count, int64_t lines, int64_t first_line,
                             std::string_view why);

}  // namespace mh
