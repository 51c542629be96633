// `multihead heads`: which heads of a translator matter.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/say.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/models/model_file.h"
#include "multihead/show/heads.h"
#include "multihead/tasks/data/dataset.h"

namespace mh::cli {
namespace {

constexpr const char* kHeadsEnd =
    "FILE has lines of source, tab, translation. Each head is taken out in turn; the table has, largest first:\n"
    "\n"
    "  without     nats per token that the model's loss grows by without the head (below 0: it is better without)\n"
    "  gradient    mean over sentences of |dL/dm|, m the head's scale (Michel et al., 2019)\n"
    "  entropy     of the head's weights, nats, mean over rows\n"
    "  confidence  its largest weight, mean over rows (Voita et al., 2019)\n"
    "\n"
    "  multihead heads models/en-de data/tatoeba/valid.en-de.tsv.xz --limit 300";

struct HeadsChoice {
  std::string model, file, ablation = "zero";
  int64_t limit = 1000;
  bool json = false;
};

std::vector<SentencePair> pairs_of(const HeadsChoice& choice, const ModelFolder& model) {
  const PairText text({.source = choice.file});
  std::vector<SentencePair> pairs;
  const auto longest = static_cast<size_t>(model.model.config().max_length - 1);
  for (int64_t n = 0; n < text.size() && static_cast<int64_t>(pairs.size()) < choice.limit; ++n) {
    SentencePair pair{model.tokenizer.encode(text.source(n)), model.tokenizer.encode(text.target(n))};
    if (pair.first.size() <= longest && pair.second.size() <= longest) pairs.push_back(std::move(pair));
  }
  return pairs;
}

void print_json(const HeadReport& report) {
  nlohmann::ordered_json out{{"loss", report.loss}, {"sentences", report.sentences}, {"tokens", report.tokens}};
  out["heads"] = nlohmann::ordered_json::array();
  constexpr const char* kNames[] = {"encoder", "decoder", "cross"};
  for (const HeadImportance& each : report.heads)
    out["heads"].push_back({{"part", kNames[static_cast<int>(each.head.kind)]},
                            {"layer", each.head.layer + 1},
                            {"head", each.head.head + 1},
                            {"without", each.loss_added},
                            {"gradient", each.gradient},
                            {"entropy", each.entropy},
                            {"confidence", each.confidence}});
  fmt::print("{}\n", out.dump(2));
}

int run(const HeadsChoice& choice) {
  ModelFolder model = load_model_folder(choice.model);
  const Ablation how = choice.ablation == "mean"      ? Ablation::mean
                       : choice.ablation == "uniform" ? Ablation::uniform
                                                      : Ablation::zero;
  HeadReport report = head_importance(model.model, pairs_of(choice, model), {.ablation = how});
  std::stable_sort(report.heads.begin(), report.heads.end(),
                   [](const HeadImportance& a, const HeadImportance& b) { return a.loss_added > b.loss_added; });
  if (choice.json) {
    print_json(report);
    return kDone;
  }
  fmt::print("loss {:.4f} nats per token over {} sentences, {} tokens\n\n", report.loss, report.sentences,
             report.tokens);
  fmt::print("head          without  gradient  entropy  confidence\n");
  for (const HeadImportance& each : report.heads)
    fmt::print("{:<12} {:>8.4f}  {:>8.4f}  {:>7.3f}  {:>10.3f}\n", to_string(each.head), each.loss_added, each.gradient,
               each.entropy, each.confidence);
  return kDone;
}

}  // namespace

void add_heads(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("heads", "say which heads of a translator matter, by taking each out");
  auto choice = std::make_shared<HeadsChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("FILE.tsv", choice->file, "sentences and translations")->type_name("")->required();
  verb->add_option("--limit", choice->limit, "read the first N pairs only (1000)")
      ->type_name("N")
      ->check(whole_number(1));
  verb->add_option("--ablate", choice->ablation, "what takes the place of a head's output (zero)")
      ->type_name("HOW")
      ->check(one_of({"zero", "mean", "uniform"}));
  verb->add_flag("--json", choice->json, "print JSON: loss, sentences, tokens, heads");
  verb->footer(kHeadsEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
