// The system's own calls.
#include "multihead/io/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace mh::detail {

FileCalls& file_calls() {
  static FileCalls calls{.open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
                         .write = ::write,
                         .fsync = ::fsync,
                         .close = ::close,
                         .rename = ::rename,
                         .unlink = ::unlink,
                         .mkdir = ::mkdir};
  return calls;
}

}  // namespace mh::detail
