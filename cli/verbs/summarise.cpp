// `multihead summarise`: texts in, a summary of each out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/in_order.h"
#include "cli/line_reader.h"
#include "cli/one_line.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/search_flags.h"
#include "multihead/base/parallel.h"
#include "multihead/generate/text/translator.h"
#include "multihead/tasks/results/result_json.h"

namespace mh::cli {
namespace {

constexpr const char* kSummariseEnd =
    "MODEL is the folder of a model that writes one text from another: BART, Pegasus, T5 and their kin. A line in is a\n"
    "text, a line out its summary, each as soon as it and all before it are written; an empty line stays empty. Of a\n"
    "text that is longer than the model reads only the beginning is summarised; stderr says so. Before every text the\n"
    "prefix stands that config.json has under task_specific_params.summarization (T5: \"summarize: \"), and\n"
    "that place and generation_config.json are followed where no flag says otherwise. A line that is not UTF-8 is\n"
    "skipped: empty on stdout, said on stderr. With --json each line out is an object:\n"
    "\n"
    "  line           number of the line in, from 1\n"
    "  text           the summary\n"
    "  tokens         how many it has\n"
    "  source_tokens  how many the text has, with the prefix\n"
    "  cut            whether only the beginning of the text was read\n"
    "  ended          whether the model ended the summary; else it was cut at the longest length\n"
    "  score          log p of the tokens divided by the length penalty; with --sample log p\n"
    "\n"
    "Worked example, of a folder as it comes from the hub:\n"
    "\n"
    "  tr '\\n' ' ' < article.txt | multihead summarise bart-large-cnn\n"
    "  multihead summarise t5-small --max-length 40 --json < articles.txt";

constexpr const char* kTask = "summarization";  // as transformers calls it

// Texts are long: fewer are read together than lines to translate.
constexpr size_t kRound = 64;

struct SummariseChoice {
  std::string model, prefix;
  SearchFlags flags;
  SamplingFlags drawing;
  int64_t max_source = 0;
  bool json = false, time = false;
};

struct SummaryTally {
  int64_t lines = 0, tokens = 0;
  double seconds = 0;
};

GenerationConfig settled(SummariseChoice& choice, const Translator& model) {
  const TextTask& folder = model.defaults(kTask);
  GenerationConfig how = folder.how;
  for (const std::string& sentence : how.unread) mention("multihead summarise: {}", sentence);
  if (choice.prefix.empty()) choice.prefix = folder.prefix;
  how.sample = choice.drawing.sample || (how.sample && !choice.flags.searches());
  how.search = choice.flags.over(how.search);
  how.sampling = choice.drawing.over(how.sampling);
  how.sampling.samples = 1;
  how.sampling.rules = choice.flags.over(how.sampling.rules);
  how.sampling.batch = how.search.batch;
  return how;
}

std::string shown(const SummariseChoice& choice, const Translation& summary, int64_t number) {
  return (choice.json ? summary_to_json(summary, number) : one_line(summary.text())) + "\n";
}

void summarise(const SummariseChoice& choice, const Translator& model, const GenerationConfig& how,
               const std::vector<LineReader::Line>& lines, SummaryTally& tally) {
  std::vector<std::string> texts;
  for (const LineReader::Line& line : lines) texts.push_back(line.text);
  const auto number = [&](size_t n) { return tally.lines + static_cast<int64_t>(n) + 1; };
  std::vector<Translation> done(lines.size());
  InOrder output([&](size_t n, const std::string& text) {
    if (!lines[n].skipped.empty()) mention("multihead summarise: skipped line {}: {}", number(n), lines[n].skipped);
    if (done[n].cut || lines[n].left_out > 0)
      mention("multihead summarise: line {} is too long for the model ({} bytes); only its beginning is summarised",
              number(n), lines[n].text.size() + lines[n].left_out);
    tally.tokens += static_cast<int64_t>(done[n].candidates.front().token_scores.size());
    std::fwrite(text.data(), 1, text.size(), stdout);
    flush_output();
  });
  TextOptions options{.split = false, .prefix = choice.prefix, .max_source = choice.max_source};
  options.on_line = [&](size_t n, const Translation& summary) {
    done[n] = summary;
    output.put(n, shown(choice, summary, number(n)));
  };
  const auto begin = std::chrono::steady_clock::now();
  GenerationConfig own = how;
  own.sampling.first_sentence = static_cast<uint64_t>(tally.lines);
  model.write(texts, own, options);
  tally.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  tally.lines += static_cast<int64_t>(lines.size());
}

int run(SummariseChoice choice) {
  refuse_stdin_as_stdout();
  choice.flags.settle();
  const Translator model = Translator::load(choice.model, choice.flags.compute());
  const GenerationConfig how = settled(choice, model);
  if (isatty(STDIN_FILENO) == 1) mention("Type a text and press Enter; Ctrl-D ends.");
  LineReader reader(STDIN_FILENO);
  SummaryTally tally;
  for (auto lines = reader.take(kRound); !lines.empty(); lines = reader.take(kRound))
    summarise(choice, model, how, lines, tally);
  if (choice.time)
    mention("{} texts, {} tokens in {:.2f} s: {:.0f} tokens/s on {} threads", tally.lines, tally.tokens, tally.seconds,
            static_cast<double>(tally.tokens) / std::max(tally.seconds, 1e-9), threads());
  return kDone;
}

}  // namespace

void add_summarise(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("summarise", "summarise the texts on the lines of stdin");
  auto choice = std::make_shared<SummariseChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("--prefix", choice->prefix, "text that stands before every text; else as the folder says")
      ->type_name("TEXT");
  verb->add_option("--max-source", choice->max_source, "most tokens that are read of a text; else the model's")
      ->type_name("N")
      ->check(whole_number(1));
  verb->add_flag("--json", choice->json, "print a JSON object for each summary");
  verb->add_flag("--time", choice->time, "say on stderr how fast it was");
  choice->flags.add_to(*verb);
  choice->drawing.add_to(*verb);
  verb->footer(kSummariseEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
