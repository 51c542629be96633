// Descriptors 0, 1 and 2.
#include "cli/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "multihead/base/error.h"

namespace mh::cli {

void settle_standard_streams() {
  // The wrong direction for stdin and stdout: their use must be an error, not an empty file or a full success.
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) open("/dev/null", kModes[fd]);  // takes the lowest number free: fd
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

void refuse_stdin_as_stdout() {
  struct stat in {
  }, out{};
  if (fstat(STDIN_FILENO, &in) != 0 || fstat(STDOUT_FILENO, &out) != 0) return;
  if (S_ISREG(in.st_mode) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
    fail(ErrorKind::io, "stdin and stdout are the same file; expected another one for the output");
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw OutputLost{errno == 0 ? EIO : errno};  // an earlier write
}

}  // namespace mh::cli
