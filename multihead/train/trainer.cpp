// The loop: steps, validations, checkpoints, and the way back into a run that was stopped.
#include "multihead/train/trainer.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "multihead/base/parallel.h"
#include "multihead/io/checkpoint.h"
#include "multihead/io/durable_file.h"
#include "multihead/models/model_file.h"
#include "multihead/train/corpus.h"
#include "multihead/train/loader.h"
#include "multihead/train/metrics_log.h"
#include "multihead/train/run_options.h"
#include "multihead/train/stepper.h"
#include "multihead/train/training_state.h"
#include "multihead/train/validation.h"

namespace mh {

namespace {

using detail::TrainingState;
namespace fs = std::filesystem;

constexpr int64_t kUnprofiled = 3;    // first steps: memory is new to them
constexpr int64_t kTranslated = 500;  // sentences of a validation: enough for a BLEU that tells runs apart

// Refuses to go on with a model that is not the run's. `changes`: what the configuration has otherwise than the run's.
void check_fits(const NamedTensors& saved, const NamedTensors& wanted, const std::vector<std::string>& changes) {
  for (const auto& [name, tensor] : wanted) {
    const auto at = saved.find(name);
    if (at != saved.end() && at->second.shape() == tensor.shape()) continue;
    fail(ErrorKind::invalid_argument,
         "train: the run cannot go on with another model ({}); expected the one it began with, or another train.output",
         changes.empty() ? fmt::format("{} does not fit", name) : fmt::format("{}", fmt::join(changes, ", ")));
  }
}

class Run {
 public:
  explicit Run(const TrainRequest& request);
  TrainOutcome to_the_end();

 private:
  void resume();
  void begin_folder();
  bool is_over() const;
  void one_step();
  void after_step();
  void validate_now();
  void save();
  NamedTensors evaluated_weights() const;
  void say(const std::string& text) const {
    if (request_.events.on_message) request_.events.on_message(text);
  }
  std::string checkpoints() const { return detail::checkpoint_folder(config_); }
  std::string model_path() const { return folder_ + "/model.safetensors"; }

  const TrainRequest& request_;
  TrainConfig config_;
  std::string folder_;
  Corpus corpus_;
  std::unique_ptr<Loader> loader_;
  int64_t steps_ = 0;  // of the whole run
  std::unique_ptr<Stepper> stepper_;
  std::unique_ptr<MetricsLog> log_;
  TrainingState state_;
  int64_t saved_at_ = -1, validated_at_ = -1;
  double rate_ = 0;  // target tokens a second, of late
  int64_t steps_here_ = 0, profiled_steps_ = 0;
  double profiled_seconds_ = 0;
};

Run::Run(const TrainRequest& request) : request_(request), config_(request.config), folder_(config_.train.output) {
  check_config(config_);
  if (config_.train.threads > 0) set_threads(static_cast<int>(config_.train.threads));
  check_writable_folder(folder_);
  const bool has_run = detail::holds_run(config_, request.resume);
  corpus_ = read_corpus(config_, request.events, request.resume && has_run ? folder_ + "/tokenizer.json" : "");
  config_.model.vocabulary = corpus_.tokenizer.size();
  loader_ = std::make_unique<Loader>(corpus_.train, detail::loader_options(config_));
  steps_ = detail::planned_steps(config_, *loader_);
  stepper_ = std::make_unique<Stepper>(detail::stepper_options(config_, steps_));
  state_.config = to_toml(config_);
  state_.data = corpus_.train.digest();
  if (has_run) {
    resume();
  } else {
    begin_folder();
  }
  log_ = std::make_unique<MetricsLog>(folder_, has_run ? std::optional(state_.steps) : std::nullopt);
}

void Run::begin_folder() {
  make_folder(folder_);
  write_durably(folder_ + "/config.toml", state_.config);
  write_durably(folder_ + "/tokenizer.json", corpus_.tokenizer.json());
}

void Run::resume() {
  std::vector<std::string> warnings;
  const std::optional<Checkpoint> found = load_newest_checkpoint(checkpoints(), &warnings);
  for (const std::string& warning : warnings) say(warning);
  const TrainingState old = TrainingState::from_json(found->state, checkpoints());
  const auto changes = config_changes(parse_config(old.config, checkpoints()), config_);
  check_fits(found->tensors, stepper_->state(), changes);
  if (!changes.empty())
    say(fmt::format("train: this goes on otherwise than the run would have: {}", fmt::join(changes, ", ")));
  if (old.data != state_.data)
    say(fmt::format("train: {} does not hold the pairs that the run began with; it goes on with the new ones",
                    config_.data.train));
  stepper_->restore(found->tensors, old.steps, old.updates);
  loader_->seek(old.position);
  const std::string config = state_.config, data = state_.data;
  state_ = old;
  state_.config = config;
  state_.data = data;
  write_durably(folder_ + "/config.toml", state_.config);
  saved_at_ = state_.steps;
}

bool Run::is_over() const {
  return state_.steps >= steps_ || (config_.train.patience > 0 && state_.worse >= config_.train.patience);
}

TrainOutcome Run::to_the_end() {
  const TrainEvents& events = request_.events;
  if (events.on_start) {
    TrainStart start = detail::train_start(corpus_, *stepper_, steps_);
    start.first_step = state_.steps;
    events.on_start(start);
  }
  bool stopped = false;
  while (!is_over() && !stopped) {
    one_step();
    after_step();
    stopped = events.stop_requested && events.stop_requested();
  }
  std::vector<ProfileRow> profile;
  if (profiled_steps_ > 0) profile = stop_profile();
  if (!stopped && validated_at_ != state_.steps) validate_now();
  if (saved_at_ != state_.steps) save();
  return {.steps = state_.steps,
          .stopped = stopped && !is_over(),
          .best_validation = state_.best,
          .folder = folder_,
          .profile = std::move(profile),
          .profiled_steps = profiled_steps_,
          .profiled_seconds = profiled_seconds_};
}

void Run::one_step() {
  if (request_.profile && steps_here_++ == kUnprofiled) start_profile();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<PairBatch> batches;
  const int64_t epoch = loader_->position().epoch;
  for (int64_t n = 0; n < config_.train.accumulate; ++n) batches.push_back(loader_->next());
  const StepResult result = stepper_->step(batches);
  state_.steps = stepper_->steps();
  state_.updates = stepper_->optimiser().steps();
  state_.position = loader_->position();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  if (steps_here_ > kUnprofiled) {
    ++profiled_steps_;
    profiled_seconds_ += seconds;
  }
  const double now = static_cast<double>(result.tokens) / seconds;
  rate_ = rate_ == 0 ? now : rate_ + 0.05 * (now - rate_);
  if (!std::isfinite(result.norm))
    say(fmt::format("train: step {} had gradients that are not finite and was left out", state_.steps));
  log_->write(state_.steps, {{"train/loss", result.loss},
                             {"train/nll", result.nll},
                             {"train/learning_rate", result.rate},
                             {"train/grad_norm", result.norm},
                             {"train/tokens", static_cast<double>(result.tokens)},
                             {"train/tokens_per_second", now}});
  if (request_.events.on_step)
    request_.events.on_step({.step = state_.steps,
                             .steps = steps_,
                             .epoch = epoch + 1,
                             .loss = result.loss,
                             .learning_rate = result.rate,
                             .grad_norm = result.norm,
                             .tokens = result.tokens,
                             .tokens_per_second = rate_,
                             .seconds_left = static_cast<double>((steps_ - state_.steps) * result.tokens) / rate_});
}

void Run::after_step() {
  const RunConfig& train = config_.train;
  if (train.validate_every > 0 && state_.steps % train.validate_every == 0) validate_now();
  if (train.save_every > 0 && state_.steps % train.save_every == 0) save();
}

NamedTensors Run::evaluated_weights() const {
  NamedTensors means = stepper_->optimiser().means();
  return means.empty() ? stepper_->model().params().values() : means;
}

void Run::validate_now() {
  validated_at_ = state_.steps;
  Transformer model(config_.model, std::make_shared<ParamStore>(evaluated_weights()));
  if (corpus_.valid.size() == 0) return save_transformer(model_path(), model);
  const Validation v = validate(model, corpus_.tokenizer, corpus_.valid_text, corpus_.valid,
                                {.tokens_per_batch = config_.data.tokens_per_batch, .sentences = kTranslated});
  const bool best = state_.best_step == 0 || v.loss < state_.best;
  state_.worse = best ? 0 : state_.worse + 1;
  if (best) {
    state_.best = v.loss;
    state_.best_step = state_.steps;
    save_transformer(model_path(), model);
  }
  log_->write(
      state_.steps,
      {{"valid/loss", v.loss}, {"valid/perplexity", v.perplexity}, {"valid/bleu", v.bleu}, {"valid/chrf", v.chrf}});
  if (request_.events.on_validation)
    request_.events.on_validation({.step = state_.steps,
                                   .loss = v.loss,
                                   .perplexity = v.perplexity,
                                   .bleu = v.bleu,
                                   .chrf = v.chrf,
                                   .best = best});
}

void Run::save() {
  save_checkpoint(checkpoints(), {.step = state_.steps, .tensors = stepper_->state(), .state = state_.to_json()},
                  static_cast<int>(config_.train.keep));
  saved_at_ = state_.steps;
  if (request_.events.on_checkpoint) request_.events.on_checkpoint(list_checkpoints(checkpoints()).front());
}

}  // namespace

TrainOutcome train(const TrainRequest& request) { return Run(request).to_the_end(); }

}  // namespace mh
