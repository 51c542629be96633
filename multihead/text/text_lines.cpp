// The rule for lines of text, and its sentences.
#include "multihead/text/text_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

std::string_view text_after_mark(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) return text.substr(3);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") ||
      text.starts_with(std::string_view("\0\0\xFE\xFF", 4)))
    fail(ErrorKind::unsupported, "{}: begins with the byte order mark of UTF-16 or UTF-32; expected UTF-8", name);
  return text;
}

std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool BrokenLines::skips(std::string_view text, int64_t number, size_t before) {
  const auto fault = utf8_error(text);
  if (!fault) return false;
  if (count_++ == 0) {
    first_line_ = number;
    first_byte_ = before + *fault + 1;
  }
  return true;
}

std::string BrokenLines::reason() const {
  return fmt::format("not UTF-8 at byte {}; a file in another encoding is converted by iconv -f WINDOWS-1252 -t UTF-8",
                     first_byte_);
}

std::string BrokenLines::sentence(std::string_view name, int64_t lines) const {
  return count_ == 0 ? "" : skipped_sentence(name, count_, lines, first_line_, reason());
}

std::string skipped_sentence(std::string_view name, int64_t count, int64_t lines, int64_t first_line,
                             std::string_view why) {
  return fmt::format("{}: skipped {} of {} lines ({}line {}): {}", name, count, lines,
                     count == 1 ? "" : "the first is ", first_line, why);
}

}  // namespace mh
