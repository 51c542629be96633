// `multihead translate`: lines in, translations out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/heat_map.h"
#include "cli/line_reader.h"
#include "cli/model_folder.h"
#include "cli/one_line.h"
#include "cli/search_flags.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/decode/translator.h"

namespace mh::cli {
namespace {

constexpr const char* kTranslateEnd =
    "Lines come from stdin and go to stdout, each as soon as it is translated; an empty line stays empty. With\n"
    "--nbest each line out begins with the number of the line in, with --scores the score stands before the text, "
    "with\n"
    "--alignments the pairs behind it; tabs between them. A score is log p divided by the length penalty (with "
    "--sample\n"
    "log p). Bytes that are not UTF-8 become U+FFFD. Without MODEL: the folder MULTIHEAD_MODEL of the environment, or\n"
    "the model that comes with the project.\n"
    "\n"
    "  echo 'How are you?' | multihead translate\n"
    "  multihead translate --beam 8 --nbest 3 --scores < text.en\n"
    "  echo 'The weather is fine.' | multihead translate --attention";

// Lines of the first round; later rounds are four times as large each: threads wait for one another at their ends.
constexpr size_t kFirstRound = 256, kLargestRound = 4096;

struct TranslateChoice {
  std::string model;
  SearchFlags flags;
  SamplingOptions sampling;
  bool sample = false, scores = false, alignments = false, attention = false, alone = false, time = false;
  int64_t layer = 0, head = 0;  // from 1; 0: the last but one, the mean
};

struct Tally {
  int64_t lines = 0, tokens = 0;
  double seconds = 0;
};

int64_t layer_of(const TranslateChoice& choice, const Translator& translator) {
  const int64_t layers = translator.decoder_layers();
  check(choice.layer <= layers, "--layer {}: the decoder has {} layers", choice.layer, layers);
  check(choice.head <= translator.heads(), "--head {}: a layer has {} heads", choice.head, translator.heads());
  return choice.layer > 0 ? choice.layer - 1 : std::max<int64_t>(0, layers - 2);
}

HeatMap heat_map_of(const CrossAttention& attention, int64_t head) {
  HeatMap map{.rows = attention.target, .columns = attention.source, .weights = {}};
  const int64_t heads = attention.weights.size(0), first = head > 0 ? head - 1 : 0, last = head > 0 ? head : heads;
  for (int64_t t = 0; t < attention.weights.size(1); ++t) {
    map.weights.emplace_back();
    for (int64_t s = 0; s < attention.weights.size(2); ++s) {
      double sum = 0;
      for (int64_t h = first; h < last; ++h) sum += attention.weights.item({h, t, s});
      map.weights.back().push_back(static_cast<float>(sum / static_cast<double>(last - first)));
    }
  }
  return map;
}

// What is printed of one candidate.
std::string shown(const TranslateChoice& choice, const Translator& translator, const LineReader::Line& line,
                  int64_t number, const Candidate& candidate) {
  std::string out;
  if (choice.flags.search.n_best > 1) out += fmt::format("{}\t", number);
  if (choice.scores) out += fmt::format("{:.4f}\t", candidate.score);
  out += one_line(candidate.text);
  const bool looks = choice.alignments || choice.attention;
  if (!looks || candidate.token_scores.empty()) return out + (choice.alignments ? "\t\n" : "\n");
  const CrossAttention attention = translator.cross_attention(line.text, candidate, layer_of(choice, translator));
  if (choice.alignments) {
    std::vector<std::string> pairs;
    for (const auto& [i, j] : align_words(attention)) pairs.push_back(fmt::format("{}-{}", i, j));
    out += fmt::format("\t{}", fmt::join(pairs, " "));
  }
  out += "\n";
  if (choice.attention)
    out += fmt::format("\n{}\n", draw(heat_map_of(attention, choice.head), ink_of_stdout(), width_of_stdout()));
  return out;
}

void say_what_was_cut(const LineReader::Line& line, const Translation& translation, int64_t number) {
  if (!translation.cut && line.left_out == 0) return;
  const size_t bytes = line.text.size() + line.left_out;
  fmt::print(stderr,
             "multihead translate: line {} is too long for the model ({} bytes); only its beginning is translated\n",
             number, bytes);
}

void round(const TranslateChoice& choice, const Translator& translator, const std::vector<LineReader::Line>& lines,
           Tally& tally) {
  std::vector<std::string> texts;
  for (const LineReader::Line& line : lines) texts.push_back(line.text);
  const auto begin = std::chrono::steady_clock::now();
  SamplingOptions sampling = choice.sampling;
  sampling.first_sentence = static_cast<uint64_t>(tally.lines);
  const std::vector<Translation> translations =
      choice.sample ? translator.sample(texts, sampling) : translator.translate(texts, choice.flags.search);
  tally.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  std::vector<std::string> outputs(lines.size());
  parallel_for(static_cast<int64_t>(lines.size()), [&](int64_t n) {
    for (const Candidate& candidate : translations[static_cast<size_t>(n)].candidates)
      outputs[static_cast<size_t>(n)] +=
          shown(choice, translator, lines[static_cast<size_t>(n)], tally.lines + n + 1, candidate);
  });
  for (size_t n = 0; n < lines.size(); ++n) {
    ++tally.lines;
    tally.tokens += static_cast<int64_t>(translations[n].candidates.front().token_scores.size());
    say_what_was_cut(lines[n], translations[n], tally.lines);
    fmt::print("{}", outputs[n]);
  }
  if (std::fflush(stdout) != 0) fail(ErrorKind::io, "writing the translations failed");
}

int run(TranslateChoice choice) {
  choice.flags.settle();
  check(choice.layer == 0 || choice.attention || choice.alignments, "--layer goes with --attention or --alignments");
  choice.sampling.samples = choice.flags.search.n_best;
  choice.sampling.rules = choice.flags.search.rules;
  choice.sampling.batch = choice.flags.search.batch;
  const Translator translator = Translator::load(model_folder(choice.model), choice.flags.compute());
  layer_of(choice, translator);
  if (isatty(STDIN_FILENO) == 1) fmt::print(stderr, "Type a sentence and press Enter; Ctrl-D ends.\n");

  LineReader reader(STDIN_FILENO);
  Tally tally;
  size_t most = choice.alone ? 1 : kFirstRound;
  for (auto lines = reader.take(most); !lines.empty(); lines = reader.take(most)) {
    round(choice, translator, lines, tally);
    if (!choice.alone) most = std::min(4 * most, kLargestRound);
  }
  if (choice.time) {
    const double seconds = std::max(tally.seconds, 1e-9);
    fmt::print(stderr, "{} sentences, {} tokens in {:.2f} s: {:.1f} sentences/s, {:.0f} tokens/s on {} threads\n",
               tally.lines, tally.tokens, tally.seconds, static_cast<double>(tally.lines) / seconds,
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
  flag("--temperature", sampling.temperature, "below 1 bolder choices are rarer, above 1 likelier (1)", "X", number());
  flag("--top-k", sampling.top_k, "draw from the N most probable words only (0: all)", "N", whole_number(0));
  flag("--top-p", sampling.top_p, "draw from the fewest words that have this probability together (1)", "P", number());
  flag("--min-p", sampling.min_p, "leave out words less than P times as probable as the best (0)", "P", number());
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
  verb->add_flag("--scores", choice->scores, "print the score before each translation");
  verb->add_flag("--alignments", choice->alignments, "print which words belong together: i-j, source-target, from 0");
  CLI::Option* attention = verb->add_flag("--attention", choice->attention,
                                          "draw what the decoder looked at: source across, translation down");
  verb->add_option("--layer", choice->layer,
                   "decoder layer for --attention and --alignments, from 1 (the last but one)")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  verb->add_option("--head", choice->head, "one head for --attention, from 1 (the mean of all)")
      ->type_name("N")
      ->check(whole_number(1, 4096))
      ->needs(attention);
  verb->add_flag("--alone", choice->alone, "translate one line after the other, none together: what a lone user sees");
  verb->add_flag("--time", choice->time, "say on stderr how fast it was");
  choice->flags.add_to(*verb);
  add_sampling(*verb, *choice);
  verb->footer(kTranslateEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
