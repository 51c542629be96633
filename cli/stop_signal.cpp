// A handler that notes the first signal and lets a later one end the process.
#include "cli/stop_signal.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "cli/say.h"
#include "cli/verbs.h"

namespace mh::cli {
namespace {

constexpr std::string_view kNoted = "\nmultihead: saving and stopping after this step; once more ends at once\n";
constexpr std::string_view kNothingYet = "\nmultihead: stopped before the first step; there was nothing to save\n";
constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGPIPE};

volatile sig_atomic_t noted = 0, working = 0;
timespec first{};
std::array<struct sigaction, kSignals.size()> before;

// Whether one wish was sent twice: timeout(1) signals the process and then its group.
bool is_echo() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec - first.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec - first.tv_nsec) < 1;
}

// Nobody to hear it is no reason to fail; every line to a reader that is gone would send SIGPIPE again.
void tell(std::string_view text) {
  signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const ssize_t written = quiet() ? 0 : write(STDERR_FILENO, text.data(), text.size());
}

void note(int which) {
  const int error = errno;
  if (working == 0) {
    tell(kNothingYet);
    _exit(kStopped);
  }
  if (noted != 0 && !is_echo()) {
    signal(which, SIG_DFL);
    raise(which);  // ends the process when this handler returns
  } else if (noted == 0) {
    noted = 1;
    clock_gettime(CLOCK_MONOTONIC, &first);
    tell(kNoted);
  }
  errno = error;
}

}  // namespace

StopSignal::StopSignal() {
  noted = 0;
  working = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t n = 0; n < kSignals.size(); ++n) {
    sigaction(kSignals[n], nullptr, &before[n]);
    if (before[n].sa_handler != SIG_IGN || kSignals[n] == SIGPIPE) sigaction(kSignals[n], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (size_t n = 0; n < kSignals.size(); ++n) sigaction(kSignals[n], &before[n], nullptr);
}

void StopSignal::work_begins() { working = 1; }

bool StopSignal::came() { return noted != 0; }

}  // namespace mh::cli
