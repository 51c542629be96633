// What a training run measures, written as it goes: metrics.jsonl for programs, TensorBoard's event files for eyes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "multihead/tasks/task.h"

namespace mh {

class MetricsLog {
 public:
  // FOLDER/metrics.jsonl and FOLDER/events.out.tfevents.….multihead, making the folder where it is missing. A run that
  // goes on from step `resumed` keeps what was written up to it and drops what came after (it will come again), and a
  // last line that a kill cut short; any other run starts with empty files. Throws: io.
  explicit MetricsLog(const std::string& folder, std::optional<int64_t> resumed = {});
  ~MetricsLog();

  // One line {"step": 12, "time": 1700000000.125, "train/loss": 3.2, …} and one event, both in the system's hands on
  // return: a kill loses nothing. NaN and infinity are null in the line and themselves in the event.
  // Throws: invalid_argument where a name is empty, "step" or "time", stands twice or is not UTF-8; io, and then the
  // files end with the last whole line and event.
  void write(int64_t step, const Metrics& metrics);

 private:
  class File;
  std::unique_ptr<File> lines_, events_;
};

}  // namespace mh
