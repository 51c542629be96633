// Control-C, SIGTERM, a terminal that closes and a reader that is gone, as a wish to stop.
#pragma once

namespace mh::cli {

// While one lives, SIGINT, SIGTERM, SIGHUP and SIGPIPE are answered; the first three stay ignored where they were
// (nohup). Until work_begins() there is nothing to save: a signal ends the process, with the exit code of what was
// stopped. Afterwards the first is only noted, with what comes within a second of it (timeout(1) sends each signal
// twice); a later one has the system's way and ends the process. SIGPIPE is answered once: every line to a reader that
// is gone sends it again.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  static void work_begins();
  static bool came();
};

}  // namespace mh::cli
