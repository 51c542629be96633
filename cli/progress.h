// How far a long verb is, on stderr: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace mh::cli {

class Progress {
 public:
  // `what` names the things counted: "cases", "rows". Quiet: shows nothing.
  Progress(std::string_view what, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done of total; `now` says what is under way. Cheap to call often.
  void at(int64_t done, int64_t total, std::string_view now = {});

 private:
  void draw_bar(int64_t done, int64_t total, std::string_view now);
  void print_line(int64_t done, int64_t total, std::string_view now);

  std::string what_;
  bool quiet_, terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace mh::cli
