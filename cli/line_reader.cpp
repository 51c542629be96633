// One buffer, read(2) and poll(2).
#include "cli/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "multihead/base/error.h"
#include "multihead/tasks/data/text_file.h"
#include "multihead/text/text_lines.h"
#include "multihead/text/unicode/utf8.h"

namespace mh::cli {

namespace {

constexpr size_t kAtOnce = size_t{1} << 16;

// A cut through a character leaves at most its first three bytes.
void keep_whole_characters(LineReader::Line& line) {
  const auto fault = utf8_error(line.text);
  if (!fault || *fault + 3 < line.text.size()) return;
  line.left_out += line.text.size() - *fault;
  line.text.resize(*fault);
}

}  // namespace

bool LineReader::take_held(Line& line) {
  if (!began_) return false;
  const size_t end = held_.find('\n', looked_);
  const bool last = end == std::string::npos;
  if (last && !(ended_ && begin_ < held_.size())) {
    looked_ = held_.size();
    return false;
  }
  line.text = held_.substr(begin_, (last ? held_.size() : end) - begin_);
  line.left_out = left_out_;
  if (!line.text.empty() && line.text.back() == '\r' && left_out_ == 0) line.text.pop_back();
  if (line.text.size() > most_bytes_) {
    line.left_out += line.text.size() - most_bytes_;
    line.text.resize(most_bytes_);
  }
  if (line.left_out > 0) keep_whole_characters(line);
  BrokenLines broken;
  if (broken.skips(line.text, 1)) {
    line.skipped = broken.reason();
    line.text.clear();
  }
  begin_ = looked_ = last ? held_.size() : end + 1;
  left_out_ = 0;
  return true;
}

// False where nothing more comes, or nothing is there and it was not to be waited for.
bool LineReader::fill(bool wait) {
  if (ended_) return false;
  pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
  if (!wait && poll(&ready, 1, 0) <= 0) return false;
  held_.erase(0, begin_);
  begin_ = 0;
  if (held_.size() > most_bytes_) {
    left_out_ += held_.size() - most_bytes_;
    held_.resize(most_bytes_);
  }
  const size_t before = held_.size();
  held_.resize(before + kAtOnce);
  ssize_t got = 0;
  do got = read(fd_, held_.data() + before, kAtOnce);
  while (got < 0 && errno == EINTR);
  held_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  looked_ = before;
  if (got < 0) fail(ErrorKind::io, "reading the lines failed: {}", std::strerror(errno));
  ended_ = got == 0;
  begin_text();
  return true;
}

// Once all that tells what begins is there: at most 16 bytes, none of them the end of a line.
void LineReader::begin_text() {
  if (began_ || (held_.size() < 16 && held_.find('\n') == std::string::npos && !ended_)) return;
  began_ = true;
  begin_ = looked_ = held_.size() - stream_text(held_, "stdin").size();
}

std::vector<LineReader::Line> LineReader::take(size_t count) {
  std::vector<Line> lines;
  Line line;
  while (lines.size() < count) {
    if (take_held(line)) {
      lines.push_back(std::move(line));
      line = {};
    } else if (!fill(lines.empty())) {
      break;
    }
  }
  return lines;
}

}  // namespace mh::cli
