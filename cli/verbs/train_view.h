// What a training run shows: a summary, a bar, a line for every validation and every file.
#pragma once

#include <memory>
#include <string>

#include "cli/progress.h"
#include "multihead/train/config/config.h"
#include "multihead/train/log/events.h"

namespace mh::cli {

// What is about to happen: machine, model, data, steps, and what is written where.
std::string train_summary(const TrainConfig& config, const TrainStart& start);
// "loss 2.345  12,345 tokens/s  1:02:03 left"
std::string step_text(const TrainStep& step);
std::string validation_text(const TrainValidation& validation);

// The events of a run, shown on stderr as they come; the summary goes to stdout. Outlives the run.
class TrainView {
 public:
  TrainView(const TrainConfig& config, bool quiet) : config_(config), quiet_(quiet) {}
  // Without stop_requested.
  TrainEvents events();
  // Takes the bar away.
  void finish() { progress_.reset(); }

 private:
  Progress& progress(const char* what);

  const TrainConfig& config_;
  bool quiet_;
  std::string counted_;  // what the bar at hand counts
  std::unique_ptr<Progress> progress_;
};

}  // namespace mh::cli
