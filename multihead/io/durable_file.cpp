// Files that are there whole or not at all: temporary file, fsync, rename, fsync of the folder.
#include "multihead/io/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_calls.h"

namespace mh {

namespace {

namespace fs = std::filesystem;
using detail::file_calls;

// Ends the name of a temporary file, before so many random digits: writers never share one.
constexpr std::string_view kTemporary = ".tmp-";
constexpr size_t kDigits = 16;
// Linux writes at most this much at once.
constexpr size_t kMostAtOnce = size_t{1} << 30;

[[noreturn]] void fail_with(int error, std::string_view doing, const std::string& path) {
  fail(ErrorKind::io, "cannot {} {}: {}", doing, printable_path(path), std::strerror(error));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : value_(file_calls().open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int value() const { return value_; }
  // 0 or the error: some file systems tell of a failed write only here.
  int close() {
    const int closed = value_ < 0 ? 0 : file_calls().close(value_);
    value_ = -1;
    return closed == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int value_;
};

int write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = file_calls().write(file, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

int sync(int file) {
  while (file_calls().fsync(file) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

// 0 or the error. File systems without such a thing answer EINVAL.
int sync_folder(const std::string& folder) {
  Descriptor opened(folder, O_RDONLY | O_DIRECTORY);
  if (opened.value() < 0) return errno;
  const int error = sync(opened.value());
  return error == EINVAL ? 0 : error;
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Else errno says why not. The dot: what is not a folder is named as such.
bool may_write_below(const std::string& folder) {
  return ::faccessat(AT_FDCWD, (folder + "/.").c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

using Parts = std::vector<std::span<const std::byte>>;

// 0 or the error.
int write_parts(const Descriptor& file, const Parts& parts) {
  if (file.value() < 0) return errno;
  for (const std::span<const std::byte> part : parts)
    if (const int error = write_all(file.value(), part)) return error;
  return 0;
}

// 0 or the error.
int write_temporary(const std::string& temporary, const Parts& parts) {
  Descriptor file(temporary, O_WRONLY | O_CREAT | O_EXCL);
  if (const int error = write_parts(file, parts)) return error;
  if (const int error = sync(file.value())) return error;
  return file.close();
}

// 0 or the error.
int write_to_device(const std::string& path, const Parts& parts) {
  // A pipe nobody reads is an error at once, not a wait without end; one that is read may take its time.
  Descriptor file(path, O_WRONLY | O_NONBLOCK);
  if (file.value() >= 0) ::fcntl(file.value(), F_SETFL, O_WRONLY);
  if (const int error = write_parts(file, parts)) return error;
  return file.close();
}

// Where a link leads, if it is one that leads anywhere.
std::string target_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target.string();
}

// A pipe, a terminal, /dev/null: a file renamed over it would take its place.
bool is_device(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

void write_durably(const std::string& path, const std::vector<std::span<const std::byte>>& parts) {
  if (is_device(path)) {
    if (const int error = write_to_device(path, parts)) fail_with(error, "write", path);
    return;
  }
  const std::string target = target_of(path);
  std::random_device random;
  const std::string temporary = fmt::format("{}{}{:08x}{:08x}", target, kTemporary, random(), random());
  int error = write_temporary(temporary, parts);
  if (error == 0 && file_calls().rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    file_calls().unlink(temporary.c_str());
    fail_with(error, "write", path);
  }
  if (const int unsynced = sync_folder(folder_of(target))) fail_with(unsynced, "sync the folder of", path);
}

void write_durably(const std::string& path, std::string_view text) {
  write_durably(path, {std::as_bytes(std::span(text))});
}

void make_folder(const std::string& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  const std::string above = folder_of(fs::path(folder).lexically_normal().string());
  if (above != folder && above != ".") make_folder(above);
  if (file_calls().mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) fail_with(errno, "make the folder", folder);
  if (!fs::is_directory(folder, error)) fail_with(ENOTDIR, "make the folder", folder);
  if (const int unsynced = sync_folder(above)) fail_with(unsynced, "sync the folder of", folder);
}

void check_writable_file(const std::string& path) {
  if (!is_device(path) && !may_write_below(folder_of(target_of(path)))) fail_with(errno, "write", path);
}

void check_writable_folder(const std::string& folder) {
  std::error_code error;
  std::string at = fs::path(folder).lexically_normal().string();
  while (!fs::exists(at, error) && folder_of(at) != at) at = folder_of(at);
  if (!fs::is_directory(at, error))
    fail(ErrorKind::io, "cannot write to {}: {} is a file; expected a folder", printable_path(folder),
         printable_path(at));
  if (!may_write_below(at)) fail_with(errno, "write to", folder);
}

void remove_leftovers(const std::string& folder, std::string_view prefix) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const size_t mark = name.rfind(kTemporary);
    if (name.starts_with(prefix) && mark != std::string::npos && name.size() == mark + kTemporary.size() + kDigits)
      leftovers.push_back(at->path());
  }
  for (const fs::path& leftover : leftovers) fs::remove(leftover, error);
}

}  // namespace mh
