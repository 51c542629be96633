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
    "MODEL may be a Hugging Face folder (Marian, M2M-100, NLLB, mBART, T5; BART, Pegasus): its generation_config.json is\n"
    "followed where no flag says otherwise, and a line is one sentence (--sentences: cut), so that what is written is\n"
    "what transformers' generate() writes. --from and --to name the languages of a model that knows several, as it\n"
    "spells them: deu_Latn (NLLB), de_DE (mBART), de (M2M-100), deu (Marian); of T5 the tasks in its config.json.\n"
    "\n"
    "A line that is not UTF-8 is skipped: empty on stdout, said on stderr. Without MODEL: the folder MULTIHEAD_MODEL of\n"
    "the environment, or the model that comes with the project.\n"
    "\n"
    "  echo 'How are you?' | multihead translate\n"
    "  multihead translate --beam 8 --nbest 3 --scores < text.en\n"
    "  multihead translate --json --warn < text.en\n"
    "  echo 'The weather is fine.' | multihead translate --attention\n"
    "  echo 'How are you?' | multihead translate nllb-200-distilled-600M --from eng_Latn --to deu_Latn";

// 47 of the 1,000 sentences of the validation set have a lower one with models/en-de.
constexpr double kLowMean = -0.6;

// Lines of the first round; later rounds are four times as large each: threads wait for one another at their ends.
constexpr size_t kFirstRound = 256, kLargestRound = 4096;

struct TranslateChoice {
  std::optional<std::string> model, page;
  SearchFlags flags;
  SamplingFlags drawing;
  LanguagePair languages;
  std::string prefix;
  TranslationView view;
  bool whole = false, sentences = false, alone = false, time = false, warn = false;
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

void round(const TranslateChoice& choice, const Translator& translator, const GenerationConfig& how,
           const std::vector<LineReader::Line>& lines, Tally& tally) {
  std::vector<std::string> texts;
  for (const LineReader::Line& line : lines) texts.push_back(line.text);
  std::vector<Translation> done(lines.size());  // of a line that waits for those before it: what stderr is told of it
  InOrder output([&](size_t n, const std::string& text) {
    say_about(choice, lines[n], done[n], tally.lines + static_cast<int64_t>(n) + 1);
    tally.tokens += static_cast<int64_t>(done[n].candidates.front().token_scores.size());
    std::fwrite(text.data(), 1, text.size(), stdout);
    flush_output();
  });
  TextOptions text{.languages = choice.languages, .prefix = choice.prefix};
  if (choice.whole || choice.sentences) text.split = choice.sentences;
  text.on_line = [&](size_t n, const Translation& translation) {
    done[n] = translation;
    output.put(n, shown(choice.view, translator, tally.lines + static_cast<int64_t>(n) + 1, translation));
  };
  const auto begin = std::chrono::steady_clock::now();
  GenerationConfig own = how;
  own.sampling.first_sentence = static_cast<uint64_t>(tally.lines);
  translator.write(texts, own, text);
  tally.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (choice.page && tally.lines == 0) show_first(choice, translator, done.front().candidates.front());
  tally.lines += static_cast<int64_t>(lines.size());
}

// How the folder wants it, with what the flags say in its place; what it asks for and gets not is said.
GenerationConfig settled(TranslateChoice& choice, const Translator& translator) {
  const TextTask& folder = translator.defaults(translator.task_of(choice.languages));
  GenerationConfig how = folder.how;
  for (const std::string& sentence : how.unread) mention("multihead translate: {}", sentence);
  if (choice.prefix.empty()) choice.prefix = folder.prefix;
  how.sample = choice.drawing.sample || (how.sample && !choice.flags.searches());
  how.search = choice.flags.over(how.search);
  how.sampling = choice.drawing.over(how.sampling);
  how.sampling.samples = how.search.n_best;
  how.sampling.rules = choice.flags.over(how.sampling.rules);
  how.sampling.batch = how.search.batch;
  const std::vector<std::string> languages = translator.languages();
  if (languages.size() > 1 && choice.languages.to.empty() && how.search.rules.forced_begin < 0)
    mention("multihead translate: the model writes {} languages, from {} to {}; --to says which", languages.size(),
            languages.front(), languages.back());
  return how;
}

int run(TranslateChoice choice) {
  refuse_stdin_as_stdout();
  choice.flags.settle();
  check(choice.layer == 0 || choice.view.looks(), "--layer goes with --attention, --alignments or --json");
  if (choice.page) check_output("--show", *choice.page, files_of(model_folder(choice.model)));
  choice.view.numbers = choice.flags.search.n_best > 1;
  const Translator translator = Translator::load(model_folder(choice.model), choice.flags.compute());
  choice.view.layer = layer_of(choice, translator);
  const GenerationConfig how = settled(choice, translator);
  if (isatty(STDIN_FILENO) == 1) mention("Type a sentence and press Enter; Ctrl-D ends.");

  LineReader reader(STDIN_FILENO);
  Tally tally;
  size_t most = choice.alone ? 1 : kFirstRound;
  for (auto lines = reader.take(most); !lines.empty(); lines = reader.take(most)) {
    round(choice, translator, how, lines, tally);
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
  verb->add_option("--from", choice->languages.from, "language of the text, of a model that knows several (deu_Latn)")
      ->type_name("LANGUAGE");
  verb->add_option("--to", choice->languages.to, "language wanted")->type_name("LANGUAGE");
  verb->add_option("--prefix", choice->prefix, "text that stands before every sentence; else as the folder says")
      ->type_name("TEXT");
  CLI::Option* whole = verb->add_flag("--whole", choice->whole, "translate a line as one sentence, whatever it holds");
  verb->add_flag("--sentences", choice->sentences, "translate each sentence of a line for itself, by any model")
      ->excludes(whole);
  CLI::Option* warn =
      verb->add_flag("--warn", choice->warn, "say on stderr which lines have a low score and may be wrong");
  verb->add_option("--warn-below", choice->warn_below, "low is a mean log p per token below X, in a sentence (-0.6)")
      ->type_name("X")
      ->check(number(-100, 0))
      ->needs(warn);
  verb->add_flag("--alone", choice->alone, "translate one line after the other, none together: what a lone user sees");
  verb->add_flag("--time", choice->time, "say on stderr how fast it was");
  choice->flags.add_to(*verb);
  choice->drawing.add_to(*verb);
  verb->footer(kTranslateEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
