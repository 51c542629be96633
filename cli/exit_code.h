// The exit codes of all verbs: one table, printed by the help, the manual and the page of the docs.
#pragma once

namespace mh::cli {

inline constexpr int kDone = 0, kFailed = 1, kUsage = 2, kStopped = 3;

struct ExitCode {
  const char* code;
  const char* meaning;
};

inline constexpr ExitCode kExitCodes[] = {
    {"0", "all is well"},
    {"1", "it ran and something failed; one sentence on stderr says what"},
    {"2", "the command line was not understood; one sentence on stderr says why"},
    {"3", "training stopped before the end, as asked by a signal, and saved what --resume needs"},
    {"128 + N", "signal N ended it, as the shell says it: 130 is Control-C"},
};

}  // namespace mh::cli
