// A bar that redraws itself ten times a second, or a line every five seconds.
#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace mh::cli {
namespace {

constexpr int kBarWidth = 30;

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::string_view what, bool quiet)
    : what_(what), quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_ && terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::at(int64_t done, int64_t total, std::string_view now) {
  if (quiet_) return;
  const auto time = std::chrono::steady_clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  if (drawn_ && done < total && time - last_ < pause) return;
  last_ = time;
  drawn_ = true;
  terminal_ ? draw_bar(done, total, now) : print_line(done, total, now);
}

void Progress::draw_bar(int64_t done, int64_t total, std::string_view now) {
  const int full = total > 0 ? static_cast<int>(kBarWidth * done / total) : 0;
  std::string line = fmt::format("[{}{}] {}/{} {}  {}", std::string(static_cast<size_t>(full), '#'),
                                 std::string(static_cast<size_t>(kBarWidth - full), '.'), done, total, what_, now);
  line.resize(std::min(line.size(), static_cast<size_t>(terminal_width() - 1)));
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

void Progress::print_line(int64_t done, int64_t total, std::string_view now) {
  fmt::print(stderr, "{} of {} {}{}{}\n", done, total, what_, now.empty() ? "" : ": ", now);
}

}  // namespace mh::cli
