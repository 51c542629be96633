// How far a long verb is, on stderr: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace mh::cli {

class Progress {
 public:
  // `what` names the things counted: "cases", "rows". Silent, or with --quiet: shows nothing. What `out` does not take
  // is dropped.
  explicit Progress(std::string_view what, bool silent = false, std::FILE* out = stderr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done of total; `now` says what is under way. Cheap to call often: a bar is drawn ten times a second; plain lines
  // come at first every five seconds, then ever more seldom, down to one a minute.
  void at(int64_t done, int64_t total, std::string_view now = {});
  // A line of its own; a bar goes on below it.
  void say(std::string_view line);

 private:
  void draw_bar(int64_t done, int64_t total, std::string_view now);
  void wipe_bar();

  std::string what_;
  std::FILE* out_;
  bool quiet_, terminal_, drawn_ = false;
  std::chrono::milliseconds pause_;
  std::chrono::steady_clock::time_point last_{};
};

// "0:07", "12:34", "1:02:03", "2 d 1:02:03".
std::string time_text(double seconds);

}  // namespace mh::cli
