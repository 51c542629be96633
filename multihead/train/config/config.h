// Everything a training run is told: a struct, the TOML file it is read from, and the page that documents every key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/optim/schedule.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

// The defaults below are those of the file. What a key means, and what it may hold: docs/configuration.md.
struct OptimizerConfig {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.98, epsilon = 1e-8;
  double weight_decay = 0.01, clip = 1;
  ScheduleKind schedule = ScheduleKind::cosine;
  int64_t warmup = 1000;
  double floor = 0;
};

struct RunConfig {
  std::string output{};
  int64_t epochs = 20, steps = 0;  // steps, where not 0
  int64_t seed = 1;
  DType precision = DType::f32;
  double label_smoothing = 0.1;
  int64_t accumulate = 1;
  double ema = 0, layer_decay = 1;
  int64_t frozen = 0;
  int64_t validate_every = 0, save_every = 500, keep = 2, patience = 0, give_up_after = 20;
  int64_t threads = 0;
};

struct StartConfig {
  std::string from{};  // key model.from: the folder or file of a model whose weights training starts from
};

struct TrainConfig {
  TaskConfig task{};
  TransformerConfig model{.vocabulary = 0};  // 0: as many as the tokenizer has
  HeadConfig head{};
  StartConfig start{};
  TokenizerConfig tokenizer{};
  DataConfig data{};
  OptimizerConfig optimizer{};
  RunConfig train{};
  RecurrentChoice recurrent{};  // keys model.kind, model.attention and model.hidden
};

// The configuration a run uses: an override "model.width=512" over a variable MULTIHEAD_MODEL_WIDTH=512 of the
// environment over the file over the default. data.max_length comes out settled. Throws: io where the file cannot be
// read; invalid_argument, with file and line, where it is no TOML, for a key that does not exist (naming the nearest),
// a value of another type or outside its range; and as check_config.
TrainConfig read_config(const std::string& path, const std::vector<std::string>& overrides = {});

// Puts "model.width=512", … over the config. Throws: as read_config for its overrides.
void override_config(TrainConfig& config, const std::vector<std::string>& overrides);

// The text of a file alone over the defaults, for configs that were saved beside a model: neither the environment nor
// check_config has a say. `name` stands in the sentences. Throws: as read_config.
TrainConfig parse_config(std::string_view toml, const std::string& name);

// The file `path`, read as parse_config reads its text. Throws: as read_file and parse_config.
TrainConfig load_config(const std::string& path);

// Whether the values fit each other. Throws: invalid_argument, naming the keys.
void check_config(const TrainConfig& config);

// Every key with what it means as a comment. Reads back to the same config.
std::string to_toml(const TrainConfig& config);

// "model.width was 256 and is 512" for every key that has another value, without those that change nothing in what is
// learned: train.output, save_every, keep and threads.
std::vector<std::string> config_changes(const TrainConfig& before, const TrainConfig& now);

// docs/configuration.md: every key, what it may hold, its default and its meaning.
std::string configuration_page();

}  // namespace mh
