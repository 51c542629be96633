// A text for a language model: lines read from a file by the rule of every reader, and their tokens cut into windows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/text_lines.h"
#include "multihead/text/tokenizer.h"

namespace mh {

class PlainText {
 public:
  PlainText() = default;
  // The lines of the file; gzip and xz are unpacked. Blank lines are skipped; lines that are not UTF-8 and those of
  // more than kLongestLine bytes are skipped and counted. Throws: io where it cannot be read; invalid_argument where no
  // line is left.
  explicit PlainText(const std::string& path);

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

// The tokens of a text, every line followed by </s>, cut into windows of at most `longest` tokens: one line after the
// other where packed, else each line for itself. Every token is in exactly one window.
class TextWindows {
 public:
  struct Options {
    int64_t longest = 256;
    bool packed = true;
    int32_t end = 2;
  };
  TextWindows() = default;
  // Encodes on all threads.
  TextWindows(const PlainText& text, const Tokenizer& tokenizer, const Options& options);

  int64_t size() const { return starts_.empty() ? 0 : static_cast<int64_t>(starts_.size()) - 1; }
  std::span<const int32_t> operator[](int64_t window) const {
    const auto n = static_cast<size_t>(window);
    return std::span(ids_).subspan(static_cast<size_t>(starts_[n]), static_cast<size_t>(starts_[n + 1] - starts_[n]));
  }
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  // A hash of all ids and where windows end.
  std::string digest() const;

 private:
  std::vector<int32_t> ids_;
  std::vector<int64_t> starts_;
};

}  // namespace mh
