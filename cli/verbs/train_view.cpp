// Numbers of a training run as text.
#include "cli/verbs/train_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/grouped.h"
#include "cli/say.h"
#include "multihead/base/parallel.h"
#include "multihead/ops/machine.h"
#include "multihead/tasks/task_type.h"

namespace mh::cli {

namespace {

// "BLEU 31.3"; nothing of a score that was not taken.
std::string metric_text(const std::string& name, double value) {
  if (name == "bleu") return value < 0 ? "" : fmt::format("BLEU {:.1f}", value);
  if (name == "chrf") return value < 0 ? "" : fmt::format("chrF {:.1f}", value);
  if (name == "loss") return fmt::format("loss {:.4f}", value);
  std::string words = name;
  std::replace(words.begin(), words.end(), '_', ' ');
  return fmt::format("{} {:.{}f}", words, value, name.starts_with("perplexity") ? 2 : 4);
}

// "3 + 3", or of one stack "6".
std::string layers_text(const TrainConfig& config) {
  const TaskType& type = task_type(config.task.kind);
  const TransformerConfig& model = config.model;
  if (type.encoder && type.decoder) return fmt::format("{} + {}", model.encoder_layers, model.decoder_layers);
  return fmt::format("{}", type.encoder ? model.encoder_layers : model.decoder_layers);
}

// "1,603,490 source and 1,697,829 target tokens"; of a text its tokens, of texts with labels what is read.
std::string amount_text(const TaskFacts& facts) {
  if (facts.counted != "tokens") return fmt::format("{} tokens", grouped(facts.source_tokens));
  if (facts.source_tokens == 0) return fmt::format("{} tokens", grouped(facts.tokens));
  return fmt::format("{} source and {} target tokens", grouped(facts.source_tokens), grouped(facts.tokens));
}

}  // namespace

std::string train_summary(const TrainConfig& config, const TrainStart& start) {
  const auto& [task, model, head, from, tokenizer, data, optimizer, train, recurrent] = config;
  std::string out;
  const auto line = [&](const char* name, const std::string& text) { out += fmt::format("{:<12}{}\n", name, text); };
  const std::string cpu = cpu_info().model;
  line("machine", fmt::format("{}{}{} thread{}, kernels {}", cpu, cpu.empty() ? "" : ", ", threads(),
                              threads() == 1 ? "" : "s", rung_name()));
  const std::string shape = !start.data.model.empty()
                                ? start.data.model
                                : fmt::format("width {}, {}, {} layers", model.width,
                                              recurrent.is_recurrent() ? fmt::format("hidden {}", recurrent.hidden)
                                                                       : fmt::format("{} heads", model.heads),
                                              layers_text(config));
  line("model", fmt::format("{} parameters: {}, {}{}", grouped(start.parameters), shape, name(train.precision),
                            from.from.empty() ? "" : fmt::format(", weights of {}", from.from)));
  const std::string& origin = tokenizer.path.empty() ? from.from : tokenizer.path;
  const TaskFacts& facts = start.data;
  if (facts.vocabulary > 0)
    line("tokenizer", fmt::format("{} tokens, {}", grouped(facts.vocabulary),
                                  origin.empty() ? "learned from the training data" : origin));
  line("training", fmt::format("{} {}, {}: {}", grouped(facts.train), facts.examples, amount_text(facts), data.train));
  line("validation",
       facts.valid == 0
           ? "none"
           : fmt::format("{} {}: {}", grouped(facts.valid), facts.examples,
                         data.valid.empty() ? fmt::format("held out of the training {}", facts.examples) : data.valid));
  line("steps",
       fmt::format("{}{}{}", grouped(start.steps), train.steps > 0 ? "" : fmt::format(", {} epochs", train.epochs),
                   start.first_step == 0 ? "" : fmt::format("; {} are done", grouped(start.first_step))));
  line("writes",
       fmt::format("{}/: the model, {} and configuration; checkpoints every {} steps; the log", train.output,
                   facts.vocabulary > 0 ? "its tokenizer" : "how to prepare what it reads", grouped(train.save_every)));
  return out;
}

std::string step_text(const TrainStep& step) {
  return fmt::format("loss {:.3f}  {} {}/s  {} left", step.loss, grouped(static_cast<int64_t>(step.tokens_per_second)),
                     step.counted, time_text(step.seconds_left));
}

std::string validation_text(const TrainValidation& validation) {
  std::string out = fmt::format("step {}: validation", grouped(validation.step));
  const char* before = " ";
  for (const auto& [name, value] : validation.metrics) {
    const std::string text = metric_text(name, value);
    if (!text.empty()) out += std::exchange(before, ", ") + text;
  }
  if (validation.other_value)
    out += fmt::format("; of the {} (the {} {:.4f})", validation.mean ? "running mean" : "weights",
                       validation.mean ? "weights have" : "running mean has", *validation.other_value);
  return out + (validation.best ? ", the best so far" : "");
}

// One bar at a time: the first ends where another thing is counted.
Progress& TrainView::progress(const char* what) {
  if (!progress_ || counted_ != what) {
    progress_.reset();
    progress_ = std::make_unique<Progress>(what, quiet_);
    counted_ = what;
  }
  return *progress_;
}

TrainEvents TrainView::events() {
  TrainEvents events;
  events.on_start = [this](const TrainStart& start) {
    progress_.reset();
    if (quiet_) return;
    put(stdout, train_summary(config_, start));
  };
  events.on_step = [this](const TrainStep& step) { progress("steps").at(step.step, step.steps, step_text(step)); };
  events.on_validation = [this](const TrainValidation& validation) {
    progress("steps").say(validation_text(validation));
    for (const std::string& sample : validation.samples) progress("steps").say("sample: " + sample);
  };
  events.on_checkpoint = [this](const std::string& path) { progress("steps").say("saved " + path); };
  events.on_message = [this](const std::string& text) { progress("steps").say(text); };
  events.on_wait = [this](const std::string& what, int64_t done, int64_t total) {
    progress("parts").at(done, total, what);
  };
  return events;
}

}  // namespace mh::cli
