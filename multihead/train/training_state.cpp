// The state of a run as JSON.
#include "multihead/train/training_state.h"

#include <nlohmann/json.hpp>

#include "multihead/base/error.h"

namespace mh::detail {

std::string TrainingState::to_json() const {
  nlohmann::ordered_json out;
  out["steps"] = steps;
  out["updates"] = updates;
  out["epoch"] = position.epoch;
  out["batch"] = position.batch;
  out["best"] = best;
  out["best_step"] = best_step;
  out["worse"] = worse;
  out["config"] = config;
  out["data"] = data;
  return out.dump();
}

TrainingState TrainingState::from_json(const std::string& text, const std::string& path) {
  try {
    const nlohmann::json in = nlohmann::json::parse(text);
    TrainingState out;
    out.steps = in.at("steps").get<int64_t>();
    out.updates = in.at("updates").get<int64_t>();
    out.position.epoch = in.at("epoch").get<int64_t>();
    out.position.batch = in.at("batch").get<int64_t>();
    out.best = in.at("best").get<double>();
    out.best_step = in.at("best_step").get<int64_t>();
    out.worse = in.at("worse").get<int64_t>();
    out.config = in.at("config").get<std::string>();
    out.data = in.at("data").get<std::string>();
    return out;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::io, "train: {} holds no state of a training run ({})", path, error.what());
  }
}

}  // namespace mh::detail
