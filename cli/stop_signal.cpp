// A handler that notes the first signal and lets a later one end the process.
#include "cli/stop_signal.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace mh::cli {
namespace {

constexpr std::string_view kNoted = "\nmultihead: saving and stopping after this step; once more ends at once\n";

volatile sig_atomic_t noted = 0;
timespec first{};

// Whether one wish was sent twice: timeout(1) signals the process and then its group.
bool is_echo() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec - first.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec - first.tv_nsec) < 1;
}

void note(int which) {
  const int before = errno;
  if (noted != 0 && !is_echo()) {
    signal(which, SIG_DFL);
    raise(which);  // ends the process when this handler returns
  } else if (noted == 0) {
    noted = 1;
    clock_gettime(CLOCK_MONOTONIC, &first);
    // Nobody to hear it is no reason to fail.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kNoted.data(), kNoted.size());
  }
  errno = before;
}

}  // namespace

StopSignal::StopSignal() {
  noted = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

StopSignal::~StopSignal() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
}

bool StopSignal::came() { return noted != 0; }

}  // namespace mh::cli
