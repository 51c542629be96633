// The system calls that make a file durable, as a table: tests put their own there to record, refuse or end them.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace mh::detail {

// Each as the system's of that name: below 0 on failure, with errno.
struct FileCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*write)(int file, const void* bytes, size_t count);
  int (*fsync)(int file);
  int (*close)(int file);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
  int (*mkdir)(const char* path, mode_t mode);
};

// The one that all writers use. To be changed only while nobody writes.
FileCalls& file_calls();

}  // namespace mh::detail
