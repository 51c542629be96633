// What a training run measures, written as it goes.
#include "multihead/train/log/metrics_log.h"

#include <fcntl.h>
#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "multihead/base/error.h"
#include "multihead/io/durable_file.h"
#include "multihead/train/log/event_file.h"

namespace mh {

namespace {

namespace fs = std::filesystem;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  return {std::istreambuf_iterator<char>(in), {}};
}

// The whole lines whose step is at most `last`.
std::string lines_up_to(const std::string& text, int64_t last) {
  std::string out;
  simdjson::dom::parser parser;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    int64_t step = 0;
    if (!parser.parse(text.data() + begin, end - begin)["step"].get(step) && step <= last)
      out.append(text, begin, end + 1 - begin);
  }
  return out;
}

// The same of the records of an event file.
std::string events_up_to(const std::string& text, int64_t last) {
  std::string out;
  std::string_view rest = text;
  while (const std::optional<detail::EventRecord> record = detail::read_event(rest)) {
    if (record->step && *record->step <= last) out += record->bytes;
    rest.remove_prefix(record->bytes.size());
  }
  return out;
}

constexpr std::string_view kEventsStart = "events.out.tfevents.", kEventsEnd = ".multihead";

// The event files in `folder`, in the order of their names, which begin with the time.
std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kEventsStart) && name.ends_with(kEventsEnd)) out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// One file with what is kept of the newest one, under a name behind its name: a TensorBoard that watches the folder
// goes on to it and, by its first records, forgets what it read before. Earlier files are there only where a kill came
// before they were deleted, and the newest one holds all that counts of them.
std::string merged_events(const std::string& folder, std::optional<int64_t> resumed) {
  const double now = seconds_since_1970();
  const std::vector<std::string> before = event_files(folder);
  std::string kept = detail::event_file_start(now);
  if (resumed && !before.empty()) kept += events_up_to(text_of(before.back()), *resumed);
  std::string path = fmt::format("{}/{}{:.6f}{}", folder, kEventsStart, now, kEventsEnd);
  write_durably(path, kept);
  for (const std::string& old : before) fs::remove(old);
  return path;
}

void check_names(const Metrics& metrics) {
  std::set<std::string_view> seen = {"", "step", "time"};
  for (const auto& [name, number] : metrics)
    check(seen.insert(name).second, "metrics: the name '{}' is taken; expected a new one", name);
}

std::string line_of(double time, int64_t step, const Metrics& metrics) {
  nlohmann::ordered_json line = {{"step", step}, {"time", time}};
  for (const auto& [name, number] : metrics) line[name] = number;
  try {
    return line.dump() + "\n";
  } catch (const nlohmann::json::type_error&) {
    fail(ErrorKind::invalid_argument, "metrics: a name is not UTF-8; expected text");
  }
}

}  // namespace

// Appends whole pieces or nothing. Without a sync: a wait for the disk at every step would cost more than the last
// lines are worth, which a machine that loses power may lose.
class MetricsLog::File {
 public:
  explicit File(std::string path) : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CLOEXEC)) {
    if (file_ < 0) fail_with(errno);
    size_ = ::lseek(file_, 0, SEEK_END);
  }
  ~File() { ::close(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void append(std::string_view piece) {
    for (std::string_view left = piece; !left.empty();) {
      const ssize_t written = ::write(file_, left.data(), left.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int error = errno;
        if (::ftruncate(file_, size_) == 0) ::lseek(file_, size_, SEEK_SET);
        fail_with(error);
      }
      left.remove_prefix(static_cast<size_t>(written));
    }
    size_ += static_cast<off_t>(piece.size());
  }

 private:
  [[noreturn]] void fail_with(int error) const {
    fail(ErrorKind::io, "cannot write '{}': {}", path_, std::strerror(error));
  }

  std::string path_;
  int file_;
  off_t size_ = 0;
};

MetricsLog::MetricsLog(const std::string& folder, std::optional<int64_t> resumed) {
  make_folder(folder);
  const std::string lines = folder + "/metrics.jsonl";
  write_durably(lines, resumed ? lines_up_to(text_of(lines), *resumed) : "");
  lines_ = std::make_unique<File>(lines);
  events_ = std::make_unique<File>(merged_events(folder, resumed));
}

MetricsLog::~MetricsLog() = default;

void MetricsLog::write(int64_t step, const Metrics& metrics) {
  check_names(metrics);
  const double time = seconds_since_1970();
  lines_->append(line_of(time, step, metrics));
  events_->append(detail::scalar_event(time, step, metrics));
}

}  // namespace mh
