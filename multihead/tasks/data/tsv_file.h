// The one reader of tab-separated lines: training, eval and the training of tokenizers read through it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/text_lines.h"

namespace mh {

// Lines one after the other; gzip and xz are unpacked. A line is skipped and counted where a column that is read is not
// UTF-8; columns that nobody reads may hold anything.
class TsvFile {
 public:
  // Throws: as read_text.
  explicit TsvFile(const std::string& path);

  // Goes to the next line; false at the end.
  bool next();
  std::string_view line() const { return line_; }
  int64_t number() const { return number_; }  // of the line, from 1; after the last, how many there are

  // Splits the line into these columns, counted from 1, or into all where none is named; false, and the line is
  // counted, where one of them is not UTF-8. Throws: invalid_argument, with file and line, where a column is missing.
  bool split(std::span<const int64_t> columns = {});
  const std::vector<std::string_view>& fields() const { return fields_; }  // of the last split

  const BrokenLines& broken() const { return broken_; }
  const std::shared_ptr<void>& keeper() const { return keeper_; }  // what the views look at

 private:
  std::string path_;
  std::shared_ptr<void> keeper_;
  std::string_view rest_, line_;
  int64_t number_ = 0;
  std::vector<std::string_view> all_, fields_;
  BrokenLines broken_;
};

}  // namespace mh
