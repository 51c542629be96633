// Lines as they come: read at once where they are there, waited for where not.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mh::cli {

class LineReader {
 public:
  // Of a line that is longer only the first `most_bytes` are kept.
  explicit LineReader(int fd, size_t most_bytes = size_t{1} << 20) : fd_(fd), most_bytes_(most_bytes) {}

  struct Line {
    std::string text{};     // without its end, "\n" or "\r\n"; empty where it is not UTF-8
    size_t left_out = 0;    // bytes past the most
    std::string skipped{};  // why it is empty, where it was not UTF-8
  };
  // Waits for one line, then takes as many more as are there already, at most `count` in all. None at the end of the
  // file. A byte order mark before the first is skipped. Throws: io; unsupported where what comes is compressed or
  // UTF-16.
  std::vector<Line> take(size_t count);

 private:
  bool take_held(Line& line);
  bool fill(bool wait);
  void begin_text();
  int fd_;
  size_t most_bytes_;
  std::string held_;
  size_t begin_ = 0, looked_ = 0;  // of held_: where the next line begins, up to where no line ends
  size_t left_out_ = 0;            // of the line that begins there
  bool began_ = false, ended_ = false;
};

}  // namespace mh::cli
