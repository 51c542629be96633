// `multihead generate`: prompts in, the texts that a model writes behind them out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cli/in_order.h"
#include "cli/line_reader.h"
#include "cli/one_line.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/threads_flag.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/show_page.h"
#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/generate/text/text_generator.h"
#include "multihead/tasks/results/result_json.h"

namespace mh::cli {
namespace {

constexpr const char* kGenerateEnd =
    "MODEL is the folder of a model that continues text: one that 'multihead train' made with task.kind =\n"
    "\"language_model\", or a Hugging Face folder (GPT-2, Llama, Qwen, GPT-NeoX; T5, BART and their kin, which write "
    "a\n"
    "text of its own), whose generation_config.json is followed where no flag says otherwise. The text behind --prompt "
    "is written token by token, as it is chosen. Without --prompt every line\n"
    "of stdin is a prompt, and every line out is a prompt with the text behind it, line breaks as spaces; a line that\n"
    "cannot be continued is skipped: empty on stdout, said on stderr. With --json each line out is an object:\n"
    "\n"
    "  line    number of the prompt, from 1\n"
    "  prompt  as it was given\n"
    "  text    what is written behind it\n"
    "  tokens  how many\n"
    "  ended   whether the model ended the text; else it was cut at the longest length\n"
    "  score   log p of the tokens\n"
    "\n"
    "A model of our own draws every token with its own probabilities; --temperature, --top-k, --top-p and --min-p "
    "shape\n"
    "them, in this order. The same seed gives the same text. Worked example:\n"
    "\n"
    "  printf '[model]\\nwidth = 64\\n[task]\\nkind = \"language_model\"\\n[data]\\ntrain = "
    "\"README.md\"\\n[train]\\noutput = "
    "\"lm\"\\nsteps = 300\\n' > lm.toml\n"
    "  multihead train lm.toml\n"
    "  multihead generate lm -p 'The model' -n 40 --seed 1\n"
    "  multihead generate lm -p 'The model' -n 40 --greedy\n"
    "  head README.md | multihead generate lm -n 20 --json";

constexpr size_t kContinuedTogether = 64;  // lines of stdin that are continued together

struct GenerateChoice {
  std::string model, precision = "f32", stop;
  std::optional<std::string> prompt, page;
  std::optional<int64_t> tokens, beam, top_k;
  std::optional<uint64_t> seed;
  std::optional<float> temperature, repetition_penalty;
  std::optional<double> top_p, min_p;
  std::optional<int64_t> min_length, no_repeat;
  bool greedy = false, json = false, time = false;

  bool draws() const { return seed || temperature || top_k || top_p || min_p; }
};

struct Tally {
  int64_t lines = 0, tokens = 0;
  double seconds = 0;
};

template <class Choice, class Place>
void put_where_given(const Choice& choice, Place& place) {
  if (choice) place = static_cast<Place>(*choice);
}

void settle_rules(const GenerateChoice& choice, WritingRules& rules) {
  if (choice.tokens) rules.max_text = 0;
  put_where_given(choice.tokens, rules.max_length);
  put_where_given(choice.min_length, rules.min_length);
  put_where_given(choice.no_repeat, rules.no_repeat_ngram);
  put_where_given(choice.repetition_penalty, rules.repetition_penalty);
}

// How the folder wants it, with what the flags say in its place.
GenerationConfig settled(const GenerateChoice& choice, GenerationConfig how) {
  if (choice.draws()) how.sample = true;
  if (choice.greedy || choice.beam) how.sample = false;
  if (choice.greedy) how.search.beam = 1;
  put_where_given(choice.beam, how.search.beam);
  how.search.n_best = how.sampling.samples = 1;
  if (choice.stop == "first") how.search.stop = Stop::first;
  if (choice.stop == "exact") how.search.stop = Stop::exact;
  if (choice.stop == "hf") how.search.stop = Stop::heuristic;
  put_where_given(choice.seed, how.sampling.seed);
  put_where_given(choice.temperature, how.sampling.temperature);
  put_where_given(choice.top_k, how.sampling.top_k);
  put_where_given(choice.top_p, how.sampling.top_p);
  put_where_given(choice.min_p, how.sampling.min_p);
  settle_rules(choice, how.search.rules);
  settle_rules(choice, how.sampling.rules);
  return how;
}

// `before`: whether the prompt is the beginning of the text.
std::string shown(const GenerateChoice& choice, bool before, const std::string& prompt, const Continuation& written,
                  int64_t line) {
  return (choice.json ? to_json(written, prompt, line) : one_line((before ? prompt : "") + written.text)) + "\n";
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush_output();
}

// What is recorded: the whole text, or a source and what was written for it.
RecordInput recorded(bool continues, const std::string& prompt, const Continuation& written) {
  if (continues) return {.text = prompt + written.text};
  return {.text = prompt, .written = written.ids};
}

// What writes, how, and where the first text is shown.
struct Writer {
  const TextGenerator& generator;
  const GenerationConfig& how;
  FirstPage& page;
};

// Lines that are continued together.
class Round {
 public:
  Round(const GenerateChoice& choice, const Writer& writer, Tally& tally)
      : choice_(choice), writer_(writer), tally_(tally) {}

  void run(const std::vector<LineReader::Line>& lines) {
    InOrder output([](size_t, const std::string& text) { print(text); });
    std::vector<size_t> asked;
    for (size_t n = 0; n < lines.size(); ++n) {
      if (lines[n].skipped.empty() && lines[n].left_out == 0) {
        asked.push_back(n);
      } else {
        skip(n, lines[n].left_out > 0 ? "is too long" : lines[n].skipped, output);
      }
    }
    write(lines, asked, output);
    tally_.lines += static_cast<int64_t>(lines.size());
  }

 private:
  int64_t number(size_t n) const { return tally_.lines + static_cast<int64_t>(n) + 1; }

  void skip(size_t n, const std::string& why, InOrder& output) {
    mention("multihead generate: skipped line {}: {}", number(n), why);
    output.put(n, "\n");
  }

  // Nothing is written before all prompts are found fit: where one is not, each is tried alone.
  void write(const std::vector<LineReader::Line>& lines, const std::vector<size_t>& asked, InOrder& output) {
    if (asked.empty()) return;
    std::vector<std::string> prompts;
    GenerationConfig how = writer_.how;
    for (const size_t n : asked) {
      prompts.push_back(lines[n].text);
      how.sampling.numbers.push_back(static_cast<uint64_t>(number(n) - 1));
    }
    RecordInput first;
    try {
      const auto written = writer_.generator.write(prompts, how);
      for (size_t i = 0; i < asked.size(); ++i) {
        const Continuation& best = written[i].front();
        tally_.tokens += static_cast<int64_t>(best.token_scores.size());
        output.put(asked[i], shown(choice_, writer_.generator.continues(), prompts[i], best, number(asked[i])));
        if (i == 0) first = recorded(writer_.generator.continues(), prompts[i], best);
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_argument) throw;
      if (asked.size() == 1) return skip(asked.front(), error.what(), output);
      for (const size_t n : asked) write(lines, {n}, output);
      return;
    }
    writer_.page.take(first);
  }

  const GenerateChoice& choice_;
  const Writer& writer_;
  Tally& tally_;
};

void continue_lines(const GenerateChoice& choice, const Writer& writer, Tally& tally) {
  if (isatty(STDIN_FILENO) == 1) mention("Type the beginning of a text and press Enter; Ctrl-D ends.");
  LineReader reader(STDIN_FILENO);
  Round round(choice, writer, tally);
  for (auto lines = reader.take(kContinuedTogether); !lines.empty(); lines = reader.take(kContinuedTogether))
    round.run(lines);
}

void continue_prompt(const GenerateChoice& choice, const Writer& writer, Tally& tally) {
  const TextGenerator& generator = writer.generator;
  const GenerationConfig& how = writer.how;
  const bool streams = !choice.json && (how.sample || how.search.beam == 1);
  bool began = false;
  const auto begin = [&] {
    if (!began && generator.continues()) print(*choice.prompt);
    began = true;
  };
  OnText on_text;
  if (streams)
    on_text = [&](size_t, std::string_view text) {
      begin();
      print(text);
    };
  const Continuation written = generator.write({*choice.prompt}, how, on_text).front().front();
  if (choice.json) {
    print(shown(choice, generator.continues(), *choice.prompt, written, 1));
  } else {
    begin();
    print(streams ? "\n" : written.text + "\n");
  }
  tally = {.lines = 1, .tokens = static_cast<int64_t>(written.token_scores.size())};
  writer.page.take(recorded(generator.continues(), *choice.prompt, written));
}

int run(const GenerateChoice& choice) {
  if (!choice.prompt) refuse_stdin_as_stdout();
  const TextGenerator generator =
      TextGenerator::load(choice.model, choice.precision == "bf16" ? DType::bf16 : DType::f32);
  const GenerationConfig how = settled(choice, generator.defaults());
  for (const std::string& sentence : how.unread) mention("multihead generate: {}", sentence);
  FirstPage page(choice.page, choice.model, "generate");
  Tally tally;
  const auto begin = std::chrono::steady_clock::now();
  (choice.prompt ? continue_prompt : continue_lines)(choice, {generator, how, page}, tally);
  tally.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (choice.time)
    mention("{} texts, {} tokens in {:.2f} s: {:.0f} tokens/s on {} threads", tally.lines, tally.tokens, tally.seconds,
            static_cast<double>(tally.tokens) / std::max(tally.seconds, 1e-9), threads());
  return kDone;
}

void add_drawing(CLI::App& verb, GenerateChoice& choice) {
  CLI::Option* beam =
      verb.add_option("--beam", choice.beam, "search with N hypotheses instead of drawing; written when it is done")
          ->type_name("N")
          ->check(whole_number(1, 63));
  CLI::Option* greedy = verb.add_flag("--greedy", choice.greedy, "take the most probable token every time");
  greedy->excludes(beam);
  const auto flag = [&](const char* name, auto& place, const char* about, const char* type,
                        const CLI::Validator& fits) {
    verb.add_option(name, place, about)->type_name(type)->check(fits)->excludes(beam)->excludes(greedy);
  };
  flag("--seed", choice.seed, "of the draws (1); the same seed gives the same text", "N", whole_number(0));
  flag("--temperature", choice.temperature, "below 1 bolder choices are rarer, above 1 likelier (1)", "X",
       number_above(0, 1e6));
  flag("--top-k", choice.top_k, "draw from the N most probable tokens only (0: all)", "N", whole_number(0));
  flag("--top-p", choice.top_p, "draw from the fewest tokens that have this probability together (1)", "P",
       number_above(0, 1));
  flag("--min-p", choice.min_p, "leave out tokens less than P times as probable as the best (0)", "P", number(0, 1));
  verb.add_option("--stop", choice.stop,
                  "when a beam is done: its first hypotheses are, nothing can win any more, or as Hugging Face guesses")
      ->type_name("KIND")
      ->check(one_of({"first", "exact", "hf"}))
      ->needs(beam);
}

}  // namespace

void add_generate(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("generate", "continue a text");
  auto choice = std::make_shared<GenerateChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("-p,--prompt", choice->prompt, "the beginning of the text; without it, lines of stdin")
      ->type_name("TEXT");
  verb->add_option("-n,--tokens", choice->tokens, "most tokens to write; else as many as the model's folder says")
      ->type_name("N")
      ->check(whole_number(1));
  add_drawing(*verb, *choice);
  verb->add_option("--min-length", choice->min_length, "fewest tokens to write (0)")
      ->type_name("N")
      ->check(whole_number(0));
  verb->add_option("--repetition-penalty", choice->repetition_penalty,
                   "above 1: words already written become less likely (1)")
      ->type_name("X")
      ->check(number_above(0, 1000));
  verb->add_option("--no-repeat", choice->no_repeat, "no N tokens in a row stand twice (0: they may)")
      ->type_name("N")
      ->check(whole_number(0));
  verb->add_flag("--json", choice->json, "print a JSON object for each text");
  verb->add_flag("--time", choice->time, "say on stderr how fast it was");
  add_show_flag(*verb, choice->page);
  verb->add_option("--precision", choice->precision, "of the products (f32); bf16 is faster with AMX or AVX512_BF16")
      ->type_name("TYPE")
      ->check(one_of({"f32", "bf16"}));
  add_threads_flag(*verb);
  verb->footer(kGenerateEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
