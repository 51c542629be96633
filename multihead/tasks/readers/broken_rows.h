// The one rule for rows of data that cannot be used: counted, reported with the line of the first, fatal past a limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mh {

class BrokenRows {
 public:
  // `most`: broken rows that are put up with, data.max_broken.
  BrokenRows(std::string name, int64_t most) : name_(std::move(name)), most_(most) {}

  // Counts a row that breaks a rule. Throws: invalid_argument, with the line, where it is one more than are put up
  // with.
  void add(int64_t line, const std::string& why);
  // Counts a row that holds nothing to learn from, such as an empty text: there may be any number.
  void skip(int64_t line, const std::string& why) { note(line, why); }

  int64_t broken() const { return broken_; }
  int64_t skipped() const { return skipped_; }  // those that are broken included
  // "NAME: skipped 2 of 10 rows (the first is line 7): WHY" for every reason, in the order they were met.
  std::vector<std::string> sentences(int64_t rows) const;

 private:
  struct Reason {
    std::string why;
    int64_t count, first_line;
  };
  void note(int64_t line, const std::string& why);

  std::string name_;
  int64_t most_, broken_ = 0, skipped_ = 0;
  std::vector<Reason> reasons_;
};

}  // namespace mh
