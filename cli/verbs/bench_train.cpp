// `multihead bench train`: whole training steps of the model `small` on random tokens.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/machine_facts.h"
#include "cli/threads_flag.h"
#include "cli/usage.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/profile_table.h"
#include "multihead/base/parallel.h"
#include "multihead/models/transformer.h"
#include "multihead/ops/machine.h"
#include "multihead/ops/profile.h"
#include "multihead/train/stepper.h"

namespace mh::cli {
namespace {

struct BenchTrainChoice {
  int64_t batch = 32, length = 32, steps = 10, warmup = 2;
  std::string precision = "f32";
  double dropout = 0.1;
  bool json = false, profile = false;
};

// Sentences of `length` tokens on both sides, special ones included.
std::vector<SentencePair> random_pairs(const BenchTrainChoice& choice, int64_t vocabulary) {
  const Tensor ids = randn({2 * choice.batch * choice.length}, 7);
  std::vector<SentencePair> pairs(static_cast<size_t>(choice.batch));
  int64_t at = 0;
  for (auto& [source, target] : pairs) {
    for (auto* side : {&source, &target}) {
      for (int64_t t = 0; t + 1 < choice.length; ++t) {
        const auto number = static_cast<int64_t>(std::abs(ids.item({at++})) * 1e6);
        side->push_back(static_cast<int32_t>(4 + number % (vocabulary - 4)));
      }
    }
  }
  return pairs;
}

int64_t peak_bytes() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return int64_t{1024} * use.ru_maxrss;
}

int run(const BenchTrainChoice& choice) {
  const StepperOptions options{.optimiser = {.clip = 1},
                               .schedule = {.warmup = 1000, .steps = 10000},
                               .compute = choice.precision == "bf16" ? DType::bf16 : DType::f32};
  TransformerConfig config{.dropout = static_cast<float>(choice.dropout)};
  config.max_length = std::max<int64_t>(config.max_length, choice.length);
  const auto store = std::make_shared<ParamStore>(ParamStoreOptions{.compute = options.compute});
  const Transformer model(config, store);
  Stepper stepper(store, options);
  const std::vector<SentencePair> pairs = random_pairs(choice, config.vocabulary);
  std::vector<const SentencePair*> chosen;
  for (const SentencePair& pair : pairs) chosen.push_back(&pair);
  const PairBatch batch = pair_batch(chosen, config);
  const StepBatch one{batch.target_tokens(), [&](Pass& pass) { return model.loss(batch, pass, 0.1F); }};

  std::vector<double> seconds;
  double total = 0;
  StepResult last;
  for (int64_t step = 0; step < choice.warmup + choice.steps; ++step) {
    if (step == choice.warmup && choice.profile) start_profile();
    const auto begin = std::chrono::steady_clock::now();
    last = stepper.step({one});
    if (step >= choice.warmup)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (step >= choice.warmup) total += seconds.back();
  }
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<int64_t>(seconds.size()) / 2, seconds.end());
  const double median = seconds[seconds.size() / 2];
  const double rate = static_cast<double>(batch.target_tokens()) / median;
  const int64_t params = store->count();
  if (choice.json) {
    nlohmann::ordered_json out;
    out["machine"] = bench::to_json(bench::machine_facts());
    out["model"] = {{"name", "small"}, {"parameters", params}};
    out["batch"] = choice.batch;
    out["length"] = choice.length;
    out["precision"] = choice.precision;
    out["threads"] = threads();
    out["rung"] = rung_name();
    out["seconds"] = median;
    out["tokens_per_second"] = rate;
    out["loss"] = last.loss;
    out["peak_bytes"] = peak_bytes();
    fmt::print("{}\n", out.dump(2));
  } else {
    fmt::print(
        "small, {} parameters, {} x {} tokens, {}, {} threads, rung {}\n{:.1f} ms a step, {:.0f} target tokens/s, "
        "loss {:.4f}, peak {:.0f} MB\n",
        params, choice.batch, choice.length, choice.precision, threads(), rung_name(), 1e3 * median, rate, last.loss,
        static_cast<double>(peak_bytes()) / 1e6);
    if (choice.profile) print_profile(stop_profile(), choice.steps, total);
  }
  return kDone;
}

}  // namespace

void add_bench_train(CLI::App& bench, int& code) {
  CLI::App* verb = bench.add_subcommand("train", "whole training steps: tokens a second and memory");
  auto choice = std::make_shared<BenchTrainChoice>();
  const auto count = [&](const char* flag, auto& place, const char* about, int low, int high) {
    verb->add_option(flag, place, about)->type_name("N")->check(whole_number(low, high));
  };
  count("--batch", choice->batch, "sentences a step (32)", 1, 65536);
  count("--length", choice->length, "tokens a sentence, each side (32)", 2, 4096);
  count("--steps", choice->steps, "steps that are timed (10)", 1, 100000);
  verb->add_option("--precision", choice->precision, "of the products (f32); weights stay f32")
      ->type_name("TYPE")
      ->check(one_of({"f32", "bf16"}));
  add_threads_flag(*verb);
  verb->add_option("--dropout", choice->dropout, "probability of a zero (0.1)")->type_name("P")->check(number(0, 0.99));
  verb->add_flag("--profile", choice->profile, "also where the time goes, kernel by kernel");
  verb->add_flag("--json", choice->json,
                 "print JSON: machine, model, tokens_per_second, peak_bytes and what was asked for");
  verb->footer("The model is `small`: vocabulary 8000, width 256, 4 heads, feed-forward 1024, 3 + 3 layers.");
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
