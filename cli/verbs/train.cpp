// `multihead train`: from a configuration to a model folder.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/grouped.h"
#include "cli/output_file.h"
#include "cli/say.h"
#include "cli/stop_signal.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/profile_table.h"
#include "cli/verbs/train_view.h"
#include "multihead/tasks/task_type.h"
#include "multihead/train/config/suggest.h"
#include "multihead/train/dry_run.h"
#include "multihead/train/trainer.h"

namespace mh::cli {
namespace {

struct TrainChoice {
  std::string config;
  std::vector<std::string> overrides, suggest;
  bool resume = false, check = false, profile = false, keys = false;
  int threads = 0;
};

constexpr const char* kTrainEnd =
    "A configuration names at least data.train, a file of lines `source<TAB>target`, and train.output, a folder:\n"
    "  [data]\n"
    "  train = \"data/tatoeba/train.en-de.tsv\"\n"
    "  valid = \"data/tatoeba/valid.en-de.tsv\"\n"
    "  [train]\n"
    "  output = \"models/mine\"\n"
    "--suggest prints one for your own pairs: multihead train --suggest my.tsv > my.toml\n"
    "Every key can also be set by --set or by a variable such as MULTIHEAD_TRAIN_EPOCHS=5. Control-C (or SIGTERM,\n"
    "SIGHUP, a pipe whose reader is gone) saves and stops after the step at hand, with exit code 3; --resume "
    "continues\n"
    "as if never interrupted. Before the first step there is nothing to save: it ends at once.";

// A run's own config.toml may be what it is resumed from; nothing else that is read may be written.
void refuse_own_output(const TrainChoice& choice, const TrainConfig& config) {
  const std::string& from = config.start.from;
  std::vector<std::string> inputs{config.data.train, config.data.train_target, config.data.valid,
                                  config.data.valid_target};
  inputs.insert(inputs.end(), {config.tokenizer.path, from, from + "/model.safetensors", from + "/tokenizer.json"});
  if (!choice.resume) inputs.push_back(choice.config);
  for (const char* name : {"config.toml", "tokenizer.json", "model.safetensors", "metrics.jsonl"})
    refuse_input_as_output("train.output:", config.train.output + "/" + name, inputs);
}

int check_only(const TrainRequest& request) {
  const DryRun dry = dry_run(request);
  if (!quiet())
    fmt::print("first step  loss {:.3f}, {:.2f} s\ncheck: all is well; nothing was written\n", dry.loss, dry.seconds);
  return kDone;
}

// ", best validation loss 1.2345 (running mean of the weights)"
std::string shipped_text(const TrainConfig& config, const TrainOutcome& outcome) {
  std::string out;
  if (config.data.validates() || task_type(config.task.kind).judges_itself)
    out = fmt::format(", best validation {} {:.4f}", outcome.watched, outcome.best_validation);
  if (config.train.ema > 0)
    out += outcome.mean_shipped ? " (running mean of the weights)" : " (weights, not their running mean)";
  return out;
}

// The rest of a command line that uses the trained folder.
std::string use_of(const TrainConfig& config, const std::string& folder) {
  std::string use = task_type(config.task.kind).use;
  return use.replace(use.find("FOLDER"), std::string_view("FOLDER").size(), folder);
}

int train_model(TrainRequest request, TrainView& view) {
  const StopSignal signal;
  request.events.stop_requested = StopSignal::came;
  request.events.on_start = [show = request.events.on_start](const TrainStart& start) {
    StopSignal::work_begins();
    show(start);
  };
  const TrainOutcome outcome = train(request);
  view.finish();
  if (request.profile) print_profile(outcome.profile, outcome.profiled_steps, outcome.profiled_seconds);
  if (outcome.stopped) {
    if (!quiet())
      fmt::print("stopped after step {}; to go on: multihead train {}/config.toml --resume\n", grouped(outcome.steps),
                 outcome.folder);
    return kStopped;
  }
  if (!quiet())
    fmt::print("trained {} steps{}; to use it: multihead {}\n", grouped(outcome.steps),
               shipped_text(request.config, outcome), use_of(request.config, outcome.folder));
  return kDone;
}

int run(const TrainChoice& choice) {
  if (choice.keys) {
    fmt::print("{}", configuration_page());
    return kDone;
  }
  if (!choice.suggest.empty()) {
    TrainConfig given;
    given.data.train = choice.suggest.front();
    if (choice.suggest.size() > 1) given.data.train_target = choice.suggest.back();
    fmt::print("{}", suggest(given, choice.overrides).toml());
    return kDone;
  }
  if (choice.config.empty()) throw CLI::RequiredError("CONFIG.toml");
  std::vector<std::string> overrides = choice.overrides;
  if (choice.threads > 0) overrides.push_back(fmt::format("train.threads={}", choice.threads));
  const TrainConfig config = read_config(choice.config, overrides);
  refuse_own_output(choice, config);
  TrainView view(config, quiet());
  const TrainRequest request{
      .config = config, .resume = choice.resume, .profile = choice.profile, .events = view.events()};
  return choice.check ? check_only(request) : train_model(request, view);
}

}  // namespace

void add_train(CLI::App& app, int& code) {
  CLI::App* verb =
      app.add_subcommand("train", "train a translator from sentence pairs, or a language model from a text");
  auto choice = std::make_shared<TrainChoice>();
  verb->add_option("CONFIG.toml", choice->config, "the configuration; --keys lists what it may hold")->type_name("");
  verb->add_option("--set", choice->overrides,
                   "a key of the configuration, over what the file says; may be given again")
      ->type_name("key=value")
      ->allow_extra_args(false);
  verb->add_flag("--resume", choice->resume,
                 "go on from the newest checkpoint of train.output; begin where there is none");
  verb->add_flag("--check", choice->check, "read configuration and data, try one step, write nothing, and stop");
  verb->add_option("--suggest", choice->suggest,
                   "print a configuration for these pairs, a TSV file or two files, and stop")
      ->type_name("DATA")
      ->expected(1, 2);
  verb->add_flag("--profile", choice->profile, "print where the time of a step goes, at the end");
  verb->add_flag("--keys", choice->keys, "print every key with its default and meaning, as Markdown, and stop");
  verb->add_option("--threads", choice->threads, "threads to compute with, as --set train.threads=N")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  verb->footer(kTrainEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
