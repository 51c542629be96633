// Control-C and SIGTERM as a wish to stop, once.
#pragma once

namespace mh::cli {

// While one lives, the first SIGINT or SIGTERM is only noted, with what comes within a second of it (timeout(1) sends
// each signal twice); a later one has the system's way and ends the process.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  static bool came();
};

}  // namespace mh::cli
