// The state of a run as JSON.
#include "multihead/train/training_state.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"

namespace mh::detail {

bool TrainingState::note_validation(double cost) {
  const bool better = std::isfinite(cost) && (best_step == 0 || cost < best);
  worse = better ? 0 : worse + 1;
  if (!better) return false;
  best = cost;
  best_step = steps;
  return true;
}

std::string TrainingState::to_json() const {
  nlohmann::ordered_json out;
  out["steps"] = steps;
  out["updates"] = updates;
  out["epoch"] = position.epoch;
  out["batch"] = position.batch;
  out["best"] = best;
  out["best_step"] = best_step;
  out["worse"] = worse;
  out["validated_step"] = validated_step;
  out["mean_shipped"] = mean_shipped;
  out["config"] = config;
  out["data"] = data;
  out["tokenizer"] = tokenizer;
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
    out.validated_step = in.value("validated_step", int64_t{0});  // older checkpoints have neither
    out.mean_shipped = in.value("mean_shipped", false);
    out.config = in.at("config").get<std::string>();
    out.data = in.at("data").get<std::string>();
    out.tokenizer = in.value("tokenizer", "");
    return out;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::io, "train: {} holds no state of a training run ({})", path, error.what());
  }
}

}  // namespace mh::detail
