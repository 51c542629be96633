// A handler that notes the signal and takes itself away.
#include "cli/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace mh::cli {
namespace {

constexpr std::string_view kNoted = "\nmultihead: saving and stopping after this step; once more ends at once\n";

volatile sig_atomic_t noted = 0;

void note(int) {
  const int before = errno;
  noted = 1;
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  // Nobody to hear it is no reason to fail.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kNoted.data(), kNoted.size());
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
