// The loop: steps, validations, checkpoints, and the way back into a run that was stopped.
#include "multihead/train/trainer.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "multihead/io/checkpoint.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/folder_lock.h"
#include "multihead/train/config/run_options.h"
#include "multihead/train/log/metrics_log.h"
#include "multihead/train/log/pace.h"
#include "multihead/train/memory_need.h"
#include "multihead/train/model_choice.h"
#include "multihead/train/run_setup.h"
#include "multihead/train/training_state.h"

namespace mh {

namespace {

using detail::TrainingState;

constexpr int64_t kUnprofiled = 3;  // first steps: memory is new to them

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

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Run {
 public:
  explicit Run(const TrainRequest& request);
  TrainOutcome to_the_end();

 private:
  void take_folder();
  void resume();
  void begin_folder();
  bool is_over() const;
  bool has_diverged() const;
  void one_step();
  void report(const StepResult& result, int64_t epoch, double seconds);
  void after_step(int64_t epoch);
  void finish(bool stopped);
  bool validate_now();
  void ship(const detail::ModelChoice& choice);
  void save();
  void say(const std::string& text) const {
    if (request_.events.on_message) request_.events.on_message(text);
  }
  std::string checkpoints() const { return detail::checkpoint_folder(config_); }

  const TrainRequest& request_;
  const detail::RunSetup setup_;
  const TrainConfig& config_ = setup_.config;
  const std::string folder_;
  std::optional<FolderLock> lock_;
  std::unique_ptr<MetricsLog> log_;
  TrainingState state_;
  detail::Pace pace_;
  int64_t saved_at_ = -1;
  const std::string counted_ = setup_.task->facts().counted;
  int64_t skipped_ = 0;  // steps in a row whose gradients were not finite
  int64_t steps_here_ = 0, profiled_steps_ = 0;
  double profiled_seconds_ = 0;
};

Run::Run(const TrainRequest& request) : request_(request), setup_(request), folder_(config_.train.output) {
  state_.config = to_toml(config_);
  state_.data = setup_.task->digest();
  state_.tokenizer = setup_.task->tokenizer();
  take_folder();
  if (setup_.has_run) {
    resume();
  } else {
    begin_folder();
  }
  log_ = std::make_unique<MetricsLog>(folder_, setup_.has_run ? std::optional(state_.steps) : std::nullopt);
}

// Another process may have trained here since the setup looked.
void Run::take_folder() {
  make_folder(folder_);
  lock_.emplace(folder_);
  check(detail::holds_run(config_, true) == setup_.has_run,
        "train: another process trained into {} meanwhile; expected --resume to go on with it, or another train.output",
        folder_);
}

void Run::begin_folder() {
  write_durably(folder_ + "/config.toml", state_.config);
  setup_.task->begin(folder_);
}

void Run::resume() {
  std::vector<std::string> warnings;
  const std::optional<Checkpoint> found = load_newest_checkpoint(checkpoints(), &warnings);
  for (const std::string& warning : warnings) say(warning);
  const TrainingState old = TrainingState::from_json(found->state, checkpoints());
  const auto changes = config_changes(parse_config(old.config, checkpoints()), config_);
  check_fits(found->tensors, setup_.stepper->state(), changes);
  check(old.tokenizer.empty() || old.tokenizer == state_.tokenizer,
        "train: {}/tokenizer.json is not the tokenizer that the run began with; expected its hash to be {}", folder_,
        old.tokenizer);
  if (!changes.empty()) say(fmt::format("train: resuming with changed settings: {}", fmt::join(changes, ", ")));
  if (old.data != state_.data)
    say(fmt::format("train: {} does not hold the data that the run began with; it goes on with the new ones",
                    config_.data.train));
  setup_.stepper->restore(found->tensors, old.steps, old.updates);
  setup_.loader->seek(old.position);
  const std::string config = state_.config, data = state_.data, tokenizer = state_.tokenizer;
  state_ = old;
  state_.config = config;
  state_.data = data;
  state_.tokenizer = tokenizer;
  write_durably(folder_ + "/config.toml", state_.config);
  saved_at_ = state_.steps;
}

bool Run::is_over() const {
  return state_.steps >= setup_.steps || (config_.train.patience > 0 && state_.worse >= config_.train.patience);
}

bool Run::has_diverged() const { return config_.train.give_up_after > 0 && skipped_ >= config_.train.give_up_after; }

TrainOutcome Run::to_the_end() {
  const TrainEvents& events = request_.events;
  if (events.on_start) {
    TrainStart start = detail::train_start(*setup_.task, *setup_.stepper, setup_.steps);
    start.first_step = state_.steps;
    events.on_start(start);
  }
  bool stopped = false;
  while (!is_over() && !has_diverged() && !stopped) {
    const int64_t epoch = state_.position.epoch;
    one_step();
    after_step(epoch);
    stopped = events.stop_requested && events.stop_requested();
  }
  std::vector<ProfileRow> profile;
  if (profiled_steps_ > 0) profile = stop_profile();
  finish(stopped);
  return {.steps = state_.steps,
          .stopped = stopped && !is_over(),
          .best_validation = setup_.task->facts().watched.cost(state_.best),  // its own inverse
          .watched = setup_.task->facts().watched.metric,
          .mean_shipped = state_.mean_shipped,
          .folder = folder_,
          .profile = std::move(profile),
          .profiled_steps = profiled_steps_,
          .profiled_seconds = profiled_seconds_};
}

// However it ended, there is a model: the best so far, or what there is where none was judged.
void Run::finish(bool stopped) {
  const bool to_judge = !stopped && !has_diverged() && state_.validated_step != state_.steps;
  if (to_judge && validate_now()) saved_at_ = -1;
  if (state_.best_step == 0) {
    if (const detail::ModelChoice newest = detail::newest_model(setup_); detail::is_finite(setup_.stepper->params()))
      ship(newest);
    else
      say("train: no model was written: some of its weights are not finite");
  }
  if (saved_at_ != state_.steps) save();
  if (!has_diverged()) return;
  const std::vector<std::string> kept = list_checkpoints(checkpoints());
  fail(ErrorKind::invalid_argument,
       "train: the run diverged: the gradients of the last {} steps, up to step {}, are not finite; try a lower "
       "optimizer.learning_rate (it is {}), a longer optimizer.warmup (it is {}) or optimizer.clip = 1; {}",
       skipped_, state_.steps, config_.optimizer.learning_rate, config_.optimizer.warmup,
       kept.empty() ? "no checkpoint had been saved before"
                    : fmt::format("the last good checkpoint is {}", kept.front()));
}

void Run::one_step() {
  if (request_.profile && steps_here_++ == kUnprofiled) start_profile();
  const double begin = seconds_now();
  const int64_t epoch = setup_.loader->position().epoch;
  const StepResult result = setup_.stepper->step(setup_.next_batches());
  state_.steps = setup_.stepper->steps();
  state_.updates = setup_.stepper->optimiser().steps();
  state_.position = setup_.loader->position();
  const double end = seconds_now();

  if (steps_here_ > kUnprofiled) {
    ++profiled_steps_;
    profiled_seconds_ += end - begin;
  }
  pace_.step(begin, end, result.tokens);
  skipped_ = std::isfinite(result.norm) ? 0 : skipped_ + 1;
  report(result, epoch, end - begin);
}

void Run::report(const StepResult& result, int64_t epoch, double seconds) {
  if (skipped_ > 0) say(fmt::format("train: step {} had gradients that are not finite and was skipped", state_.steps));
  log_->write(state_.steps, {{"train/loss", result.loss},
                             {"train/nll", result.nll},
                             {"train/learning_rate", result.rate},
                             {"train/grad_norm", result.norm},
                             {"train/tokens", static_cast<double>(result.tokens)},
                             {"train/tokens_per_second", static_cast<double>(result.tokens) / seconds}});
  if (request_.events.on_step)
    request_.events.on_step({.step = state_.steps,
                             .steps = setup_.steps,
                             .epoch = epoch + 1,
                             .loss = result.loss,
                             .learning_rate = result.rate,
                             .grad_norm = result.norm,
                             .tokens = result.tokens,
                             .tokens_per_second = pace_.tokens_per_second(),
                             .counted = counted_,
                             .seconds_left = pace_.seconds_left(setup_.steps - state_.steps)});
}

// `epoch`: the one that the step began in.
void Run::after_step(int64_t epoch) {
  const RunConfig& train = config_.train;
  const bool due = train.validate_every > 0 ? state_.steps % train.validate_every == 0 : state_.position.epoch > epoch;
  const bool best = (due || state_.steps >= setup_.steps) && validate_now();
  if (best || state_.steps % train.save_every == 0) save();
}

// Whether this is the best so far.
bool Run::validate_now() {
  state_.validated_step = state_.steps;
  if (setup_.task->facts().valid == 0) {
    ship(detail::newest_model(setup_));
    return false;
  }
  const detail::ModelChoice choice = detail::better_model(setup_);
  const Verdict& verdict = choice.verdict;
  const Watched watched = setup_.task->facts().watched;
  const double value = verdict.watched();
  const bool best = state_.note_validation(watched.cost(value));
  if (best) ship(choice);
  Metrics logged;
  for (const auto& [name, value] : verdict.metrics) logged.emplace_back("valid/" + name, value);
  if (choice.other_value) {
    logged.emplace_back("valid/" + watched.metric + "_of_weights", choice.mean() ? *choice.other_value : value);
    logged.emplace_back("valid/" + watched.metric + "_of_mean", choice.mean() ? value : *choice.other_value);
  }
  log_->write(state_.steps, logged);
  if (request_.events.on_validation)
    request_.events.on_validation({.step = state_.steps,
                                   .loss = value_of(verdict.metrics, "loss"),
                                   .metrics = verdict.metrics,
                                   .samples = verdict.samples,
                                   .watched = watched,
                                   .best = best,
                                   .mean = choice.mean(),
                                   .other_value = choice.other_value});
  return best;
}

void Run::ship(const detail::ModelChoice& choice) {
  setup_.task->save(folder_);
  state_.mean_shipped = choice.mean();
}

// Not while gradients are not finite: the checkpoints from before are the good ones.
void Run::save() {
  if (skipped_ > 0) return;
  save_checkpoint(checkpoints(), {.step = state_.steps, .tensors = setup_.stepper->state(), .state = state_.to_json()},
                  static_cast<int>(config_.train.keep), state_.best_step);
  saved_at_ = state_.steps;
  if (request_.events.on_checkpoint) request_.events.on_checkpoint(list_checkpoints(checkpoints()).front());
}

}  // namespace

TrainOutcome train(const TrainRequest& request) {
  return detail::within_memory_of(request.config, [&] { return Run(request).to_the_end(); });
}

}  // namespace mh
