// A child process of a test, which ends even where the test that waits for it was killed.
#pragma once

#include <unistd.h>

namespace mh {

// fork(), with a limit on the child's life: ctest kills a test that hangs, not the child it started, and then waits for
// as long as that child holds the pipe both print to.
inline pid_t fork_child(unsigned seconds = 300) {
  const pid_t child = fork();
  if (child == 0) alarm(seconds);
  return child;
}

}  // namespace mh
