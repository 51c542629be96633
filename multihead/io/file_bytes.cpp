// The bytes of a whole file, mapped or read.
#include "multihead/io/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "multihead/base/error.h"
#include "multihead/base/memory.h"
#include "multihead/base/printable.h"

namespace mh::detail {

namespace {

[[noreturn]] void fail_with(int error, const std::string& path) {
  fail(ErrorKind::io, "cannot read {}: {}", printable_path(path), std::strerror(error));
}

// An open regular file: a pipe or a device has no size, and opening one could wait for ever.
class RegularFile {
 public:
  explicit RegularFile(const std::string& path)
      : path_(path), value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (value_ < 0) fail_with(errno, path);
    struct stat facts {};
    const int error = ::fstat(value_, &facts) != 0 ? errno : 0;
    if (error == 0 && S_ISREG(facts.st_mode)) {
      size_ = static_cast<size_t>(facts.st_size);
      return;
    }
    ::close(value_);
    if (error != 0) fail_with(error, path);
    fail(ErrorKind::io, "cannot read {}: it is {}; expected a file", printable_path(path),
         S_ISDIR(facts.st_mode) ? "a folder" : "a pipe or a device");
  }
  ~RegularFile() { ::close(value_); }
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  int descriptor() const { return value_; }
  size_t size() const { return size_; }

  void read(std::span<std::byte> out) const {
    while (!out.empty()) {
      const ssize_t got = ::read(value_, out.data(), std::min(out.size(), size_t{1} << 30));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_with(errno, path_);
      if (got == 0) fail(ErrorKind::io, "cannot read {}: it became shorter meanwhile", printable_path(path_));
      out = out.subspan(static_cast<size_t>(got));
    }
  }

 private:
  const std::string& path_;
  int value_;
  size_t size_ = 0;
};

}  // namespace

FileBytes map_file(const std::string& path) {
  const RegularFile file(path);
  const size_t size = file.size();
  if (size == 0) return {};
  // Not counted against the memory there is: a file larger than it may be read.
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.descriptor(), 0);
  if (data == MAP_FAILED) fail_with(errno, path);
  std::shared_ptr<void> keeper(data, [size](void* mapped) { ::munmap(mapped, size); });
  return {std::move(keeper), {static_cast<std::byte*>(data), size}};
}

FileBytes read_file(const std::string& path) {
  const RegularFile file(path);
  std::shared_ptr<void> keeper(allocate_bytes(file.size()), release_bytes);
  const std::span<std::byte> bytes(static_cast<std::byte*>(keeper.get()), file.size());
  file.read(bytes);
  return {std::move(keeper), bytes};
}

}  // namespace mh::detail
