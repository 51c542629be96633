// The bytes of a whole file, mapped or read.
#include "multihead/io/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/memory.h"
#include "multihead/base/printable.h"

namespace mh::detail {

namespace {

[[noreturn]] void fail_with(int error, const std::string& path) {
  fail(ErrorKind::io, "cannot read {}: {}", printable_path(path), std::strerror(error));
}

// An open file. Folders and devices, which may have no end, are refused, and pipes unless they may be one; opening
// never waits for a pipe's writer.
class OpenFile {
 public:
  enum class May { be_file, be_file_or_pipe };

  explicit OpenFile(const std::string& path, May may = May::be_file)
      : path_(path), value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (value_ < 0) fail_with(errno, path);
    struct stat facts {};
    const int error = ::fstat(value_, &facts) != 0 ? errno : 0;
    is_pipe_ = error == 0 && S_ISFIFO(facts.st_mode);
    if (error == 0 && (S_ISREG(facts.st_mode) || (is_pipe_ && may == May::be_file_or_pipe))) {
      size_ = static_cast<size_t>(facts.st_size);
      if (is_pipe_) ::fcntl(value_, F_SETFL, O_RDONLY);  // from here on a writer is waited for
      return;
    }
    ::close(value_);
    if (error != 0) fail_with(error, path);
    fail(ErrorKind::io, "cannot read {}: it is {}; expected a file", printable_path(path),
         S_ISDIR(facts.st_mode) ? "a folder"
         : is_pipe_             ? "a pipe"
                                : "a device");
  }
  ~OpenFile() { ::close(value_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return value_; }
  bool is_pipe() const { return is_pipe_; }
  size_t size() const { return size_; }

  // How many bytes came, 0 at the end.
  size_t read_some(std::span<std::byte> out) const {
    while (true) {
      const ssize_t got = ::read(value_, out.data(), std::min(out.size(), size_t{1} << 30));
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) fail_with(errno, path_);
    }
  }

  void read(std::span<std::byte> out) const {
    while (!out.empty()) {
      const size_t got = read_some(out);
      if (got == 0) fail(ErrorKind::io, "cannot read {}: it became shorter meanwhile", printable_path(path_));
      out = out.subspan(got);
    }
  }

 private:
  const std::string& path_;
  int value_;
  size_t size_ = 0;
  bool is_pipe_ = false;
};

FileBytes all_of(const OpenFile& file) {
  std::shared_ptr<void> keeper(allocate_bytes(file.size()), release_bytes);
  const std::span<std::byte> bytes(static_cast<std::byte*>(keeper.get()), file.size());
  file.read(bytes);
  return {std::move(keeper), bytes};
}

FileBytes all_of_pipe(const OpenFile& file) {
  constexpr size_t kRoom = size_t{1} << 16;
  const auto all = std::make_shared<std::vector<std::byte>>();
  for (size_t got = 1, size = 0; got != 0; all->resize(size)) {
    all->resize(size + kRoom);
    got = file.read_some(std::span(*all).subspan(size));
    size += got;
  }
  return {all, *all};
}

}  // namespace

FileBytes map_file(const std::string& path) {
  const OpenFile file(path);
  const size_t size = file.size();
  if (size == 0) return {};
  // Not counted against the memory there is: a file larger than it may be read.
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.descriptor(), 0);
  if (data == MAP_FAILED) fail_with(errno, path);
  std::shared_ptr<void> keeper(data, [size](void* mapped) { ::munmap(mapped, size); });
  return {std::move(keeper), {static_cast<std::byte*>(data), size}};
}

FileBytes read_file(const std::string& path) { return all_of(OpenFile(path)); }

FileBytes copy_of(std::span<const std::byte> bytes) {
  std::shared_ptr<void> keeper(allocate_bytes(bytes.size()), release_bytes);
  const std::span<std::byte> room(static_cast<std::byte*>(keeper.get()), bytes.size());
  std::copy(bytes.begin(), bytes.end(), room.begin());
  return {std::move(keeper), room};
}

FileBytes read_file_or_pipe(const std::string& path) {
  const OpenFile file(path, OpenFile::May::be_file_or_pipe);
  return file.is_pipe() ? all_of_pipe(file) : all_of(file);
}

}  // namespace mh::detail
