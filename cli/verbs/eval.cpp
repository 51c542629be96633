// `multihead eval`: translations of a test set against those of people, how well a language model predicts a text, how
// often a classifier or an answerer is right.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/model_folder.h"
#include "cli/one_line.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/reference_file.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "cli/verbs/eval_classes.h"
#include "cli/verbs/search_flags.h"
#include "multihead/base/parallel.h"
#include "multihead/generate/text/translator.h"
#include "multihead/io/durable_file.h"
#include "multihead/metrics/bleu.h"
#include "multihead/metrics/chrf.h"
#include "multihead/tasks/language_model.h"
#include "multihead/tasks/task_type.h"

namespace mh::cli {
namespace {

constexpr const char* kEvalEnd =
    "Of a translator, FILE has lines of source, tab, reference; further references behind further tabs, or on lines\n"
    "with the same source. It may be compressed with gzip or xz. Scores are those of sacreBLEU with the signatures printed beside "
    "them.\n"
    "\n"
    "  multihead eval models/en-de data/tatoeba/test.en-de.tsv --beam 4\n"
    "\n"
    "Of a language model, FILE is a text, and the result its perplexity per token, per word, and per word where the end\n"
    "of a line counts as one, and its bits per byte; the flags of the search have no meaning then. --set task.stride=N\n"
    "predicts more of it from more text: windows begin N tokens apart, and only what is new in each is scored.\n"
    "\n"
    "Of a classifier, FILE is a table as it was trained with, and the result its accuracy, macro F1, Matthews\n"
    "correlation and loss, one `name value` a line; where texts have several labels, micro and macro F1 and exact match,\n"
    "and where they have numbers, Pearson's and Spearman's correlation and the mean absolute error.\n"
    "Of a tagger: entity F1, precision, recall, accuracy and loss.\n"
    "Of an answerer, FILE is JSON as SQuAD has it, and the result exact match and F1 in percent, as SQuAD's scripts.\n"
    "Of a recommender, FILE is a table of histories, and the result NDCG and hit rate at 10 of every user's last item, in\n"
    "percent, its own and those of popularity and of item kNN.\n"
    "Of a model that reads pictures or recordings, FILE is a folder with one for each label, a table of files and labels,\n"
    "or an IDX file whose labels --set data.valid_target=FILE names.";

// Sentences between two looks at the progress.
constexpr size_t kRound = 512;

struct EvalChoice {
  std::string model, file, output;
  std::vector<std::string> overrides;
  SearchFlags flags;
  bool json = false, confusion = false;
};

struct Result {
  std::vector<std::string> texts;
  int64_t tokens = 0, cut = 0;
  double seconds = 0;
};

Result translate_all(const EvalChoice& choice, const std::vector<std::string>& sources) {
  const Translator translator = Translator::load(choice.model, choice.flags.compute());
  GenerationConfig how = translator.defaults().how;
  how.sample = false;
  how.search = choice.flags.over(how.search);
  Progress progress("sentences", choice.json);
  Result result;
  const auto begin = std::chrono::steady_clock::now();
  for (size_t first = 0; first < sources.size(); first += kRound) {
    progress.at(static_cast<int64_t>(first), static_cast<int64_t>(sources.size()));
    const size_t last = std::min(sources.size(), first + kRound);
    const std::vector<std::string> some(sources.begin() + static_cast<std::ptrdiff_t>(first),
                                        sources.begin() + static_cast<std::ptrdiff_t>(last));
    for (const Translation& translation : translator.write(some, how, {.prefix = translator.defaults().prefix})) {
      result.texts.push_back(translation.text());
      result.tokens += static_cast<int64_t>(translation.candidates.front().token_scores.size());
      result.cut += translation.cut;
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void write_texts(const std::string& path, const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += one_line(text) + "\n";
  write_durably(path, all);
}

int score(const EvalChoice& choice) {
  if (!choice.output.empty())
    throw CLI::ValidationError("--output", "a language model translates nothing; expected no --output");
  LanguageModelFolder model = load_language_model(choice.model);
  const TrainConfig config = config_beside(choice.model, choice.overrides);
  const auto begin = std::chrono::steady_clock::now();
  const TextScores scores = score_text(model, choice.file,
                                       {.packed = config.task.packed,
                                        .lines = config.data.lines,
                                        .longest = config.data.max_length,
                                        .stride = config.task.stride,
                                        .compute = choice.flags.compute()});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (choice.json) {
    nlohmann::ordered_json out{
        {"lines", scores.lines}, {"tokens", scores.tokens}, {"words", scores.words}, {"bytes", scores.bytes}};
    for (const auto& [name, value] : scores.metrics()) out[name] = value;
    out["seconds"] = seconds;
    out["threads"] = threads();
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  const Metrics metrics = scores.metrics();
  fmt::print("perplexity {:.3f} per token, {:.3f} per word, {:.3f} per word and line; {:.4f} bits per byte\n",
             metrics[1].second, metrics[2].second, metrics[4].second, metrics[3].second);
  fmt::print("{} lines, {} words, {} tokens, {} bytes; {:.0f} tokens/s on {} threads\n", scores.lines, scores.words,
             scores.tokens, scores.bytes, static_cast<double>(scores.tokens) / std::max(seconds, 1e-9), threads());
  return kDone;
}

int run(EvalChoice choice) {
  choice.flags.settle();
  const std::string kind = model_kind_of_folder(choice.model);
  const bool pixels = kind == "image_class" || kind == "speech_class";
  if (choice.confusion && kind != "classify" && !pixels)
    throw CLI::ValidationError("--confusion", "is for classifiers; this model is none");
  const bool is_judged_by_right_answers =
      kind == "classify" || kind == "tag" || kind == "answer" || kind == "recommend" || pixels;
  if (!choice.overrides.empty() && !is_judged_by_right_answers && kind != "language_model")
    throw CLI::ValidationError("--set", "has no meaning for a translator; expected none");
  if (kind == "language_model") return score(choice);
  if (is_judged_by_right_answers) {
    const EvalClasses classes{.model = choice.model,
                              .file = choice.file,
                              .overrides = choice.overrides,
                              .compute = choice.flags.compute(),
                              .json = choice.json,
                              .confusion = choice.confusion};
    if (kind == "answer") return eval_answers(classes);
    if (kind == "recommend") return eval_histories(classes);
    if (pixels) return eval_pixels(classes);
    return kind == "tag" ? eval_tags(classes) : eval_classes(classes);
  }
  if (!choice.output.empty()) {
    std::vector<std::string> inputs = files_of(choice.model);
    inputs.push_back(choice.file);
    check_output("--output", choice.output, inputs);
  }
  const ReferenceFile set = read_references(choice.file);
  if (!set.skipped.empty()) mention("multihead eval: {}", set.skipped);
  const Result result = translate_all(choice, set.sources);
  if (!choice.output.empty()) write_texts(choice.output, result.texts);
  const auto bleu_score = bleu(result.texts, set.references);
  const auto chrf_score = chrf(result.texts, set.references);
  const double rate = static_cast<double>(set.sources.size()) / result.seconds;
  if (choice.json) {
    const nlohmann::ordered_json out{{"sentences", set.sources.size()},
                                     {"bleu", bleu_score.score},
                                     {"bleu_signature", bleu_score.signature},
                                     {"chrf", chrf_score.score},
                                     {"chrf_signature", chrf_score.signature},
                                     {"beam", choice.flags.search.beam},
                                     {"tokens", result.tokens},
                                     {"cut", result.cut},
                                     {"seconds", result.seconds},
                                     {"threads", threads()}};
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  fmt::print("BLEU {:.2f}  {}\nchrF {:.2f}  {}\n", bleu_score.score, bleu_score.signature, chrf_score.score,
             chrf_score.signature);
  fmt::print("{} sentences, beam {}, {:.1f} sentences/s on {} threads\n", set.sources.size(), choice.flags.search.beam,
             rate, threads());
  if (result.cut > 0) fmt::print("{} sentences were too long for the model and cut\n", result.cut);
  return kDone;
}

}  // namespace

void add_eval(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("eval", "score a model on a test set: BLEU and chrF, perplexity, or accuracy");
  auto choice = std::make_shared<EvalChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("FILE.tsv", choice->file,
                   "sentences and references; a text; texts with labels; questions; or histories")
      ->type_name("")
      ->required();
  verb->add_option("--output", choice->output, "write the translations to this file, one a line")->type_name("FILE");
  verb->add_flag("--confusion", choice->confusion, "of a classifier: also print which labels it takes for which");
  verb->add_option(
          "--set", choice->overrides,
          "a key of the model's configuration with another value: of a classifier one that names columns, such "
          "as data.label=2, of a language model task.stride, task.packed, data.lines or data.max_length")
      ->type_name("key=value")
      ->allow_extra_args(false);
  verb->add_flag("--json", choice->json, "print JSON: scores, signatures, time");
  choice->flags.add_to(*verb);
  verb->footer(kEvalEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
