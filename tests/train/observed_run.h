// A run with all that can be seen of it.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/io/checkpoint.h"
#include "multihead/io/safetensors.h"
#include "multihead/train/trainer.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {

struct Seen {
  TrainConfig config;
  TrainStart start;
  TrainOutcome outcome;
  std::vector<TrainStep> steps;
  std::vector<double> nll;
  std::vector<TrainValidation> validations;
  std::vector<int64_t> saved;
  std::string refusal;
  int threads = 0;

  std::vector<int64_t> tokens() const {
    std::vector<int64_t> out;
    for (const TrainStep& step : steps) out.push_back(step.tokens);
    return out;
  }
  std::vector<int64_t> validated() const {
    std::vector<int64_t> out;
    for (const TrainValidation& v : validations) out.push_back(v.step);
    return out;
  }
  double rate(size_t step) const { return steps.at(step).learning_rate; }
  double loss(size_t step) const { return steps.at(step).loss; }
  Tokenizer tokenizer() const { return Tokenizer::load(config.train.output + "/tokenizer.json"); }
  std::map<std::string, Tensor> weights() const {
    return read_safetensors(config.train.output + "/model.safetensors").tensors;
  }
};

inline Seen observe(const TrainConfig& config) {
  Seen seen;
  seen.config = config;
  TrainRequest request{.config = config};
  request.events.on_start = [&](const TrainStart& start) {
    seen.start = start;
    seen.threads = threads();
  };
  request.events.on_step = [&](const TrainStep& step) { seen.steps.push_back(step); };
  request.events.on_validation = [&](const TrainValidation& v) { seen.validations.push_back(v); };
  request.events.on_checkpoint = [&](const std::string& path) { seen.saved.push_back(read_checkpoint(path).step); };
  seen.refusal = refusal_of([&] { seen.outcome = train(request); }).sentence;
  if (!std::filesystem::exists(config.train.output + "/metrics.jsonl")) return seen;
  std::istringstream lines(text_of(config.train.output + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line);
    if (entry.contains("train/nll") && entry["train/nll"].is_number()) seen.nll.push_back(entry["train/nll"]);
  }
  return seen;
}

}  // namespace mh
