// Records the system calls of durable files, and refuses or ends them where a test says so.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "multihead/io/file_calls.h"

namespace mh::test {

struct Call {
  std::string name;      // "open", "write", …
  std::string path;      // of a descriptor: what it was opened for
  std::string bytes{};   // of a write: those written
  std::string target{};  // of a rename
};

// In its lifetime, every call goes through it to the system.
class RecordedCalls {
 public:
  RecordedCalls() : before_(detail::file_calls()) {
    self() = this;
    detail::file_calls() = {.open = open,
                            .write = write,
                            .fsync = fsync,
                            .close = close,
                            .rename = rename,
                            .unlink = unlink,
                            .mkdir = mkdir};
  }
  ~RecordedCalls() {
    detail::file_calls() = before_;
    self() = nullptr;
  }
  RecordedCalls(const RecordedCalls&) = delete;
  RecordedCalls& operator=(const RecordedCalls&) = delete;

  std::vector<Call> calls;         // those that were made, failed ones too
  size_t end_after = SIZE_MAX;     // the process ends when so many were made
  size_t fail_at = SIZE_MAX;       // this one, counted from 0, does nothing but fail
  int error = EIO;                 // and says so
  size_t most_at_once = SIZE_MAX;  // bytes that one write takes

  // "open write fsync close …".
  std::string names() const {
    std::string out;
    for (const Call& call : calls) out += (out.empty() ? "" : " ") + call.name;
    return out;
  }

 private:
  static RecordedCalls*& self() {
    static RecordedCalls* the_one = nullptr;
    return the_one;
  }
  template <class Run>
  static auto record(Call call, Run run) {
    RecordedCalls& own = *self();
    if (own.calls.size() == own.end_after) _exit(0);
    own.calls.push_back(std::move(call));
    using Result = decltype(run());
    if (own.calls.size() - 1 == own.fail_at) {
      errno = own.error;
      return static_cast<Result>(-1);
    }
    return run();
  }
  static int open(const char* path, int flags, mode_t mode) {
    return record({"open", path}, [&] {
      const int file = self()->before_.open(path, flags, mode);
      self()->open_[file] = path;
      return file;
    });
  }
  static ssize_t write(int file, const void* bytes, size_t count) {
    const size_t some = std::min(count, self()->most_at_once);
    return record({"write", self()->open_[file], std::string(static_cast<const char*>(bytes), some)},
                  [&] { return self()->before_.write(file, bytes, some); });
  }
  static int fsync(int file) {
    return record({"fsync", self()->open_[file]}, [&] { return self()->before_.fsync(file); });
  }
  static int close(int file) {
    return record({"close", self()->open_[file]}, [&] { return self()->before_.close(file); });
  }
  static int rename(const char* from, const char* to) {
    return record({"rename", from, "", to}, [&] { return self()->before_.rename(from, to); });
  }
  static int unlink(const char* path) {
    return record({"unlink", path}, [&] { return self()->before_.unlink(path); });
  }
  static int mkdir(const char* path, mode_t mode) {
    return record({"mkdir", path}, [&] { return self()->before_.mkdir(path, mode); });
  }

  detail::FileCalls before_;
  std::map<int, std::string> open_;
};

}  // namespace mh::test
