// flock(2) on a file of the folder, which holds the number of its process.
#include "multihead/io/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"

namespace mh {

namespace {

std::string lock_path(const std::string& folder) { return folder + "/.lock"; }

void take(int file, const std::string& folder) {
  int failed = 0;
  do {
    failed = flock(file, LOCK_EX | LOCK_NB);
  } while (failed != 0 && errno == EINTR);
  if (failed == 0 || errno != EWOULDBLOCK) return;
  std::array<char, 32> text{};
  const ssize_t length = pread(file, text.data(), text.size() - 1, 0);
  close(file);
  fail(ErrorKind::invalid_argument, "{} is in use by {}; expected a folder that no other run writes to",
       printable_path(folder),
       length > 0 ? fmt::format("process {}", std::string_view(text.data(), static_cast<size_t>(length)))
                  : "another process");
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = lock_path(folder);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail(ErrorKind::io, "cannot write {}: {}", printable_path(path), std::strerror(errno));
  take(file, folder);
  file_ = file;
  const std::string number = fmt::format("{}", getpid());
  // Only for the sentence above: a disk that is full is no reason to fail here.
  if (ftruncate(file_, 0) != 0 || pwrite(file_, number.data(), number.size(), 0) < 0) return;
}

FolderLock::~FolderLock() { close(file_); }

void FolderLock::check_free(const std::string& folder) {
  const int file = open(lock_path(folder).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;  // whoever holds it has made it
  take(file, folder);
  close(file);
}

}  // namespace mh
