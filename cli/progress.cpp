// A bar that redraws itself in place, or lines now and then.
#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "cli/say.h"

namespace mh::cli {
namespace {

constexpr size_t kWidestBar = 30, kNarrowestBar = 8;
constexpr std::chrono::milliseconds kRedraw{100}, kFirstPause{5000}, kLongestPause{60000};

size_t terminal_width(std::FILE* out) {
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::string_view what, bool silent, std::FILE* out)
    : what_(what),
      out_(out),
      quiet_(silent || quiet()),
      terminal_(isatty(fileno(out)) == 1),
      pause_(terminal_ ? kRedraw : kFirstPause) {}

Progress::~Progress() { wipe_bar(); }

void Progress::wipe_bar() {
  if (drawn_ && terminal_) put(out_, "\r\033[K");
}

void Progress::at(int64_t done, int64_t total, std::string_view now) {
  if (quiet_) return;
  const auto time = std::chrono::steady_clock::now();
  if (drawn_ && done < total && time - last_ < pause_) return;
  if (drawn_ && !terminal_) pause_ = std::min(2 * pause_, kLongestPause);
  last_ = time;
  drawn_ = true;
  if (terminal_)
    draw_bar(done, total, now);
  else
    put(out_, fmt::format("{} of {} {}{}{}\n", done, total, what_, now.empty() ? "" : ": ", now));
}

void Progress::say(std::string_view line) {
  if (quiet_) return;
  wipe_bar();
  put(out_, fmt::format("{}\n", line));
  if (terminal_) last_ = {};  // the bar comes back with the next call
}

void Progress::draw_bar(int64_t done, int64_t total, std::string_view now) {
  const size_t columns = terminal_width(out_) - 1;
  std::string text = fmt::format(" {}/{} {}  {}", done, total, what_, now);
  const size_t left = columns - std::min(columns, text.size() + 2);
  const size_t width = std::clamp(left, kNarrowestBar, kWidestBar);
  const size_t full =
      total > 0
          ? static_cast<size_t>(static_cast<double>(width) * static_cast<double>(done) / static_cast<double>(total))
          : 0;
  std::string line = fmt::format("[{}{}]{}", std::string(std::min(full, width), '#'),
                                 std::string(width - std::min(full, width), '.'), text);
  line.resize(std::min(line.size(), columns));
  put(out_, "\r\033[K" + line);
}

std::string time_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto whole = static_cast<int64_t>(std::min(seconds, 1e12));
  const int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  if (days > 0) return fmt::format("{} d {}:{:02}:{:02}", days, hours, minutes, whole % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

}  // namespace mh::cli
