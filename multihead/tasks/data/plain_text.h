// A text for a language model: lines read from a file by the rule of every reader, and their tokens cut into windows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/tasks/task_setup.h"
#include "multihead/text/text_lines.h"
#include "multihead/text/tokenizer.h"

namespace mh {

class PlainText {
 public:
  PlainText() = default;
  // The lines of the file; gzip and xz are unpacked. Blank lines are skipped, unless the text is taken as it is; lines
  // that are not UTF-8 and those of more than kLongestLine bytes are skipped and counted. Throws: io where it cannot be
  // read; invalid_argument where no line is left that is not blank.
  explicit PlainText(const std::string& path, TextLines lines = TextLines::sentences);

  // How many of the last lines hold this share of the bytes: no fewer than 1, no more than half of all.
  int64_t lines_of_share(double share) const;
  // Takes the last `lines` lines off, as a text of their own. Throws: invalid_argument where more than half would go.
  PlainText hold_out(int64_t lines);

  const std::vector<std::string_view>& lines() const { return lines_; }
  int64_t size() const { return static_cast<int64_t>(lines_.size()); }
  int64_t bytes() const;  // a line's end counts as one
  int64_t words() const;  // what white space separates; a line's end is not one
  // A sentence for every rule that skipped something.
  const std::vector<std::string>& report() const { return report_; }

 private:
  std::shared_ptr<void> file_;  // what the views look at
  std::string name_;
  std::vector<std::string_view> lines_;
  std::vector<std::string> report_;
};

// The token of a line's break. Throws: invalid_argument where the tokenizer has none that stands for it alone.
int32_t line_break_of(const Tokenizer& tokenizer);

// The tokens of a text, every line followed by `end`, cut into windows of at most `longest` tokens: one line after the
// other where packed, else each line for itself. Every token is new in exactly one window. With a stride of 0 windows
// share none; else the next one begins `stride` tokens behind the beginning of that before it, and its first tokens are
// known from there; the last one is the first to reach the end.
class TextWindows {
 public:
  struct Options {
    int64_t longest = 256;
    bool packed = true;
    int32_t end = 2;     // </s>, or the token of a line's break
    int64_t stride = 0;  // at most `longest`
  };
  TextWindows() = default;
  // Encodes on all threads. Throws: invalid_argument for a length below 1 or a stride that is not in 0 to `longest`.
  TextWindows(const PlainText& text, const Tokenizer& tokenizer, const Options& options);

  int64_t size() const { return static_cast<int64_t>(begins_.size()); }
  std::span<const int32_t> operator[](int64_t window) const {
    const auto n = static_cast<size_t>(window);
    return std::span(ids_).subspan(static_cast<size_t>(begins_[n]), static_cast<size_t>(starts_[n + 1] - begins_[n]));
  }
  // How many tokens at a window's beginning are the end of the one before it.
  int64_t known(int64_t window) const {
    return starts_[static_cast<size_t>(window)] - begins_[static_cast<size_t>(window)];
  }
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  // A hash of all ids and where windows end.
  std::string digest() const;

 private:
  std::vector<int32_t> ids_;
  std::vector<int64_t> starts_;  // of the tokens that are new in each window, and where the last one ends
  std::vector<int64_t> begins_;  // of each window
};

}  // namespace mh
