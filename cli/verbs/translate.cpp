// `multihead translate`: lines in, translations out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/in_order.h"
#include "cli/line_reader.h"
#include "cli/model_folder.h"
#include "cli/output_file.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/search_flags.h"
#include "cli/verbs/show_page.h"
#include "cli/verbs/translation_view.h"
#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/generate/text/translator.h"

namespace mh::cli {
namespace {

constexpr const char* kTranslateEnd =
    "Lines come from stdin and go to stdout, each as soon as it and all before it are translated; an empty line stays\n"
    "empty. A line may hold several sentences: each is translated for itself, and the white space between them stays\n"
    "(--whole: the line is one sentence). The model that comes with the project is good for short, everyday sentences\n"
    "from English to German, with numbers and names; rare words, long sentences and all capitals are beyond it: "
    "--warn\n"
    "points at lines to look at again.\n"
    "\n"
    "With --nbest each line out begins with the number of the line in, with --scores the score stands before the "
    "text,\n"
    "with --alignments the pairs behind it; tabs between them. A score is log p divided by the length penalty (with\n"
    "--sample log p); of several sentences the mean (the sum). With --json each line out is an object:\n"
    "\n"
    "  line       number of the line in, from 1\n"
    "  rank       1 is the best of --nbest\n"
    "  text       the translation\n"
    "  score      as --scores has it\n"
    "  cut        whether a sentence was too long for the model and only its beginning was translated\n"
    "  tokens     what was written, </s> at the end of each sentence: text, log_p\n"
    "  alignment  pairs [source word, target word], from 0, words cut at white space\n"
    "\n"
    "A line that is not UTF-8 is skipped: empty on stdout, said on stderr. Without MODEL: the folder MULTIHEAD_MODEL of\n"
    "the environment, or the model that comes with the project.\n"
    "\n"
    "  echo 'How are you?' | multihead translate\n"
    "  multihead translate --beam 8 --nbest 3 --scores < text.en\n"
    "  multihead translate --json --warn < text.en\n"
    "  echo 'The weather is fine.' | multihead translate --attention";

// 47 of the 1,000 sentences of the validation set have a lower one with models/en-de.
constexpr double kLowMean = -0.6;

// Lines of the first round; later rounds are four times as large each: threads wait for one another at their ends.
constexpr size_t kFirstRound = 256, kLargestRound = 4096;

struct TranslateChoice {
  std::optional<std::string> model, page;
  SearchFlags flags;
  SamplingOptions sampling;
  TranslationView view;
  bool sample = false, whole = false, alone = false, time = false, warn = false;
  double warn_below = kLowMean;
  int64_t layer = 0;  // from 1; 0: the last but one
};

struct Tally {
  int64_t lines = 0, tokens = 0;
  double seconds = 0;
};

int64_t layer_of(const TranslateChoice& choice, const Translator& translator) {
  const int64_t layers = translator.decoder_layers();
  check(
      layers > 0 || !choice.view.looks(),
      "--attention, --alignments and --json show what the decoder looked at; this model was trained without attention");
  check(choice.layer <= layers, "--layer {}: the decoder has {} layers", choice.layer, layers);
  check(choice.view.head <= translator.heads(), "--head {}: a layer has {} heads", choice.view.head,
        translator.heads());
  return choice.layer > 0 ? choice.layer - 1 : std::max<int64_t>(0, layers - 2);
}

// What is said on stderr of a line.
void say_about(const TranslateChoice& choice, const LineReader::Line& line, const Translation& translation,
               int64_t number) {
  if (!line.skipped.empty()) mention("multihead translate: skipped line {}: {}", number, line.skipped);
  if (translation.cut || line.left_out > 0)
    mention("multihead translate: line {} is too long for the model ({} bytes); only its beginning is translated",
            number, line.text.size() + line.left_out);
  const std::optional<double> mean = lowest_mean(translation);
  if (choice.warn && mean && *mean < choice.warn_below)
    mention(
        "multihead translate: line {} has a low score ({:.2f} per token, below {:.2f}); its translation may be wrong",
        number, *mean, choice.warn_below);
}

void show_first(const TranslateChoice& choice, const Translator& translator, const Candidate& candidate) {
  write_page(*choice.page, translator, model_folder(choice.model), candidate, {});
  if (candidate.sentences.size() > 1)
    mention("multihead translate: the first line has {} sentences; the page shows the first",
            candidate.sentences.size());
}

void round(const TranslateChoice& choice, const Translator& translator, const std::vector<LineReader::Line>& lines,
           Tally& tally) {
  std::vector<std::string> texts;
  for (const LineReader::Line& line : lines) texts.push_back(line.text);
  std::vector<Translation> done(lines.size());  // of a line that waits for those before it: what stderr is told of it
  InOrder output([&](size_t n, const std::string& text) {
    say_about(choice, lines[n], done[n], tally.lines + static_cast<int64_t>(n) + 1);
    tally.tokens += static_cast<int64_t>(done[n].candidates.front().token_scores.size());
    std::fwrite(text.data(), 1, text.size(), stdout);
    flush_output();
  });
  const TextOptions text{
      .split = !choice.whole, .on_line = [&](size_t n, const Translation& translation) {
        done[n] = translation;
        output.put(n, shown(choice.view, translator, tally.lines + static_cast<int64_t>(n) + 1, translation));
      }};
  const auto begin = std::chrono::steady_clock::now();
  SamplingOptions sampling = choice.sampling;
  sampling.first_sentence = static_cast<uint64_t>(tally.lines);
  choice.sample ? translator.sample(texts, sampling, text) : translator.translate(texts, choice.flags.search, text);
  tally.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (choice.page && tally.lines == 0) show_first(choice, translator, done.front().candidates.front());
  tally.lines += static_cast<int64_t>(lines.size());
}

int run(TranslateChoice choice) {
  refuse_stdin_as_stdout();
  choice.flags.settle();
  check(choice.layer == 0 || choice.view.looks(), "--layer goes with --attention, --alignments or --json");
  if (choice.page) check_output("--show", *choice.page, files_of(model_folder(choice.model)));
  choice.view.numbers = choice.flags.search.n_best > 1;
  choice.sampling.samples = choice.flags.search.n_best;
  choice.sampling.rules = choice.flags.search.rules;
  choice.sampling.batch = choice.flags.search.batch;
  const Translator translator = Translator::load(model_folder(choice.model), choice.flags.compute());
  choice.view.layer = layer_of(choice, translator);
  if (isatty(STDIN_FILENO) == 1) mention("Type a sentence and press Enter; Ctrl-D ends.");

  LineReader reader(STDIN_FILENO);
  Tally tally;
  size_t most = choice.alone ? 1 : kFirstRound;
  for (auto lines = reader.take(most); !lines.empty(); lines = reader.take(most)) {
    round(choice, translator, lines, tally);
    if (!choice.alone) most = std::min(4 * most, kLargestRound);
  }
  if (choice.time) {
    const double seconds = std::max(tally.seconds, 1e-9);
    mention("{} sentences, {} tokens in {:.2f} s: {:.1f} sentences/s, {:.0f} tokens/s on {} threads", tally.lines,
            tally.tokens, tally.seconds, static_cast<double>(tally.lines) / seconds,
            static_cast<double>(tally.tokens) / seconds, threads());
  }
  return kDone;
}

void add_sampling(CLI::App& verb, TranslateChoice& choice) {
  CLI::Option* sample =
      verb.add_flag("--sample", choice.sample, "draw words at random instead of searching; the flags below say how");
  for (const char* searching : {"--beam", "--length-penalty", "--patience"})
    sample->excludes(verb.get_option(searching));
  const auto flag = [&](const char* name, auto& place, const char* about, const char* type,
                        const CLI::Validator& fits) {
    verb.add_option(name, place, about)->type_name(type)->check(fits)->needs(sample);
  };
  SamplingOptions& sampling = choice.sampling;
  flag("--temperature", sampling.temperature, "below 1 bolder choices are rarer, above 1 likelier (1)", "X",
       number_above(0, 1e6));
  flag("--top-k", sampling.top_k, "draw from the N most probable words only (0: all)", "N", whole_number(0));
  flag("--top-p", sampling.top_p, "draw from the fewest words that have this probability together (1)", "P",
       number_above(0, 1));
  flag("--min-p", sampling.min_p, "leave out words less than P times as probable as the best (0)", "P", number(0, 1));
  flag("--seed", sampling.seed, "of the draws (1); the same seed gives the same words", "N", whole_number(0));
}

}  // namespace

void add_translate(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("translate", "translate lines from stdin");
  auto choice = std::make_shared<TranslateChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("");
  verb->add_option("--nbest", choice->flags.search.n_best, "print the N best translations of each line (1)")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  TranslationView& view = choice->view;
  CLI::Option* scores = verb->add_flag("--scores", view.scores, "print the score before each translation");
  CLI::Option* alignments =
      verb->add_flag("--alignments", view.alignments, "print which words belong together: i-j, source-target, from 0");
  CLI::Option* attention =
      verb->add_flag("--attention", view.attention, "draw what the decoder looked at: source across, translation down");
  CLI::Option* json =
      verb->add_flag("--json", view.json, "print a JSON object for each translation: text, scores, pairs");
  for (CLI::Option* column : {scores, alignments, attention}) json->excludes(column);
  verb->add_option("--layer", choice->layer, "decoder layer to look at, from 1 (the last but one)")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  verb->add_option("--head", view.head, "one head for --attention, from 1 (the mean of all)")
      ->type_name("N")
      ->check(whole_number(1, 4096))
      ->needs(attention);
  add_show_flag(*verb, choice->page);
  verb->add_flag("--whole", choice->whole, "translate a line as one sentence, whatever it holds");
  CLI::Option* warn =
      verb->add_flag("--warn", choice->warn, "say on stderr which lines have a low score and may be wrong");
  verb->add_option("--warn-below", choice->warn_below, "low is a mean log p per token below X, in a sentence (-0.6)")
      ->type_name("X")
      ->check(number(-100, 0))
      ->needs(warn);
  verb->add_flag("--alone", choice->alone, "translate one line after the other, none together: what a lone user sees");
  verb->add_flag("--time", choice->time, "say on stderr how fast it was");
  choice->flags.add_to(*verb);
  add_sampling(*verb, *choice);
  verb->footer(kTranslateEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
