// From the size of the data to a configuration with its reasons.
#include "multihead/train/config/suggest.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/tasks/data/dataset.h"
#include "multihead/train/config/config_keys.h"

namespace mh {

namespace {

// docs/choosing.md: the first three by bench/compare/grid.py on an NVIDIA H200, English to German, 2026-11; the last is
// the model that comes with the project, trained by `multihead train` itself.
constexpr SizeAdvice kAdvice[] = {
    {1'000, 2'000, 256, 1'024, 100, 1'024, 0.3, 1e-3, true},
    {5'000, 4'000, 256, 1'024, 60, 2'048, 0.2, 1e-3, true},
    {29'000, 4'000, 256, 1'024, 30, 4'096, 0.2, 2e-3, false},
    {166'663, 8'000, 256, 1'024, 20, 4'096, 0.1, 1e-3, false},
};

// Past the end of any run: the validation at the end is the only one.
constexpr int64_t kNever = 1'000'000;

// Enough pairs to know how many tokens a sentence has.
constexpr int64_t kSample = 20'000;
constexpr int64_t kLargestHoldOut = 1'000, kHeldOutOf = 20;

// Target tokens of all pairs, their ends included, as a tokenizer of that size would cut them.
int64_t target_tokens(const PairText& text, const TrainConfig& config) {
  const int64_t every = std::max<int64_t>(1, text.size() / kSample);
  std::vector<std::string> lines;
  for (int64_t i = 0; i < text.size(); i += every) {
    lines.emplace_back(text.source(i));
    lines.emplace_back(text.target(i));
  }
  const Tokenizer tokenizer = train_bpe(lines, {.vocabulary = static_cast<int32_t>(config.tokenizer.vocabulary),
                                                .lowercase = config.tokenizer.lowercase,
                                                .normalisation = config.tokenizer.normalise});
  std::vector<int32_t> ids;
  for (size_t i = 1; i < lines.size(); i += 2) tokenizer.encode(lines[i], ids);
  const double sampled = static_cast<double>(lines.size()) / 2;
  return static_cast<int64_t>((static_cast<double>(ids.size()) / sampled + 1) * static_cast<double>(text.size()));
}

// A file's name up to its first point: "pairs" of "data/pairs.en-de.tsv.gz".
std::string stem_of(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::string stem = name.substr(0, name.find('.', 1));
  return stem.empty() ? "model" : stem;
}

void take_advice(Suggestion& out, const SizeAdvice& advice) {
  TrainConfig& config = out.config;
  config.model.width = advice.width;
  config.model.feed_forward = advice.feed_forward;
  config.model.dropout = static_cast<float>(advice.dropout);
  config.tokenizer.vocabulary = advice.vocabulary;
  config.data.tokens_per_batch = advice.tokens_per_batch;
  config.optimizer.learning_rate = advice.learning_rate;
  config.train.epochs = advice.epochs;
  if (advice.last_weights) config.train.validate_every = kNever;
}

void explain(Suggestion& out, const SizeAdvice& advice, int64_t pairs, int64_t steps) {
  const auto because = [&](const char* key, std::string why) { out.reasons.emplace_back(key, std::move(why)); };
  const std::string near = fmt::format("measured with {} pairs", advice.pairs);
  because("model.width", "a width of 128 was worse with 1000 pairs and with 5000");
  because("model.feed_forward", "four times the width, as in the paper");
  because("model.dropout", fmt::format("{}; more pairs need less", near));
  because("tokenizer.vocabulary", near);
  if (out.config.data.hold_out > 0)
    because("data.hold_out", "so many pairs are kept out of training, all of a source together, to validate with");
  because("data.tokens_per_batch",
          fmt::format("makes about {} steps of the {} epochs", steps, out.config.train.epochs));
  because("optimizer.learning_rate", near);
  because("optimizer.warmup", "a tenth of all steps; between 3 % and 25 % it hardly mattered");
  because("train.epochs", "half as many were clearly worse where both were tried");
  because("train.ema", "a running mean gained nothing at the end of this schedule");
  if (advice.last_weights)
    because("train.validate_every",
            "at the end alone, so that the last weights are kept: with so few pairs the validation loss rises while "
            "translations still improve");
  if (pairs > 2 * advice.pairs)
    out.heading += fmt::format(
        "# More pairs than any that were measured: these values are for {}. A larger model may do "
        "better.\n",
        advice.pairs);
}

}  // namespace

const SizeAdvice& advice_for(int64_t pairs) {
  const auto distance = [pairs](const SizeAdvice& advice) {
    return std::abs(std::log(static_cast<double>(std::max<int64_t>(1, pairs)) / static_cast<double>(advice.pairs)));
  };
  return *std::min_element(std::begin(kAdvice), std::end(kAdvice),
                           [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
}

std::string Suggestion::toml() const {
  std::string out = heading, section;
  const TrainConfig defaults;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    const auto reason =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& each) { return each.first == key.path(); });
    if (reason == reasons.end() && key.value(config) == key.value(defaults)) continue;
    if (key.section != section) out += fmt::format("\n[{}]\n", section = key.section);
    if (reason != reasons.end()) out += fmt::format("# {}\n", reason->second);
    out += fmt::format("{} = {}\n", key.name, detail::value_text(key.value(config)));
  }
  return out;
}

Suggestion suggest(const TrainConfig& given, const std::vector<std::string>& overrides) {
  Suggestion out;
  out.config = given;
  override_config(out.config, overrides);
  check(out.config.task.kind == TaskKind::translation,
        "suggest: what it knows was measured with sentence pairs; expected task.kind = \"translation\"");
  const DataConfig& data = out.config.data;
  const PairText text({data.train, data.train_target, data.source_column, data.target_column});
  const SizeAdvice& advice = advice_for(text.size());
  take_advice(out, advice);
  if (data.valid.empty()) out.config.data.hold_out = std::min(kLargestHoldOut, text.size() / kHeldOutOf);
  if (out.config.train.output.empty()) out.config.train.output = "models/" + stem_of(data.train);
  override_config(out.config, overrides);

  const int64_t tokens = target_tokens(text, out.config);
  const int64_t batches = std::max<int64_t>(1, tokens / data.tokens_per_batch);
  const int64_t steps = std::max<int64_t>(1, batches * out.config.train.epochs / out.config.train.accumulate);
  out.config.optimizer.warmup = std::max<int64_t>(1, steps / 10);
  override_config(out.config, overrides);
  check_config(out.config);
  out.heading = fmt::format(
      "# Suggested for the {} pairs of {}: about {} target tokens.\n"
      "# What was measured: docs/choosing.md. To train: multihead train THIS_FILE\n",
      text.size(), printable_path(data.train), tokens);
  explain(out, advice, text.size(), steps);
  return out;
}

}  // namespace mh
