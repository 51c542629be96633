// `multihead answer`: a question and a text in, the part of the text that answers it out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/lines_through.h"
#include "cli/one_line.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/threads_flag.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/show_page.h"
#include "multihead/base/error.h"
#include "multihead/tasks/results/result_json.h"
#include "multihead/tasks/verbs/answerer.h"

namespace mh::cli {
namespace {

constexpr const char* kAnswerEnd =
    "With --question all of stdin is one text; without, each line is a question and a text with a tab between them.\n"
    "Answer, probability, begin and end are printed with tabs between them; begin and end count the text's characters\n"
    "from 0. Long texts are read in windows that overlap.\n"
    "\n"
    "  multihead answer models/squad --question 'Where does Amy live?' < page.txt\n"
    "  printf 'Who sings?\\tAda sings.\\n' | multihead answer models/squad";

constexpr size_t kLinesAnsweredAtOnce = 64;

struct AnswerChoice {
  std::string model, precision = "f32";
  std::optional<std::string> question, page;
  AnswerOptions options{};
  bool json = false;
};

std::string answered(const AnswerChoice& choice, const Question& asked, const Answer& one) {
  if (choice.json) return to_json(one, asked.context) + '\n';
  return fmt::format("{}\t{:.4f}\t{}\t{}\n", one_line(one.text), one.score, characters_before(asked.context, one.begin),
                     characters_before(asked.context, one.end));
}

// All of stdin; line breaks are part of it.
std::string whole_text() {
  if (isatty(STDIN_FILENO) == 1) mention("Type a text and press Enter; Ctrl-D ends.");
  std::string out;
  LineReader reader(STDIN_FILENO);
  int64_t number = 0;
  for (auto lines = reader.take(1024); !lines.empty(); lines = reader.take(1024)) {
    for (const LineReader::Line& line : lines) {
      ++number;
      if (!line.skipped.empty()) mention("multihead answer: skipped line {}: {}", number, line.skipped);
      if (line.left_out > 0) mention_cut("answer", number);
      out += line.text + '\n';
    }
  }
  return out;
}

std::string answer_lines(const AnswerChoice& choice, const Answerer& answerer, std::span<const LineReader::Line> lines,
                         int64_t first) {
  std::vector<Question> asked;
  std::vector<bool> is_asked;
  for (size_t n = 0; n < lines.size(); ++n) {
    const size_t tab = lines[n].text.find('\t');
    is_asked.push_back(tab != std::string::npos);
    if (tab != std::string::npos)
      asked.push_back({lines[n].text.substr(0, tab), lines[n].text.substr(tab + 1)});
    else if (lines[n].skipped.empty())
      mention("multihead answer: skipped line {}: no tab between a question and a text",
              first + static_cast<int64_t>(n));
  }
  const std::vector<Answer> found = answerer(asked, choice.options);
  std::string out;
  size_t next = 0;
  for (const bool is : is_asked) {
    if (is) {
      out += answered(choice, asked[next], found[next]);
      ++next;
    } else {
      out += '\n';
    }
  }
  return out;
}

int answer(const AnswerChoice& choice) {
  refuse_stdin_as_stdout();
  const Answerer answerer = Answerer::load(choice.model, precision_named(choice.precision));
  FirstPage page(choice.page, choice.model, "answer");
  if (choice.question) {
    const Question asked{*choice.question, whole_text()};
    const std::string out = answered(choice, asked, answerer(asked.question, asked.context, choice.options));
    std::fwrite(out.data(), 1, out.size(), stdout);
    flush_output();
    page.take({.text = asked.question, .pair = asked.context});
    return kDone;
  }
  lines_through("answer", kLinesAnsweredAtOnce, [&](std::span<const LineReader::Line> lines, int64_t first) {
    std::string out = answer_lines(choice, answerer, lines, first);
    for (const LineReader::Line& line : lines)
      if (line.text.find('\t') != std::string::npos) page.take(text_or_pair(line.text));
    return out;
  });
  return kDone;
}

}  // namespace

void add_answer(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("answer", "find the part of a text from stdin that answers a question");
  auto choice = std::make_shared<AnswerChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("-q,--question", choice->question, "the question; all of stdin is the text")->type_name("TEXT");
  verb->add_flag("--no-answer", choice->options.no_answer, "an empty answer, where the model finds none in the text");
  verb->add_option("--window", choice->options.max_length, "tokens that are read at once, with the question (384)")
      ->type_name("N")
      ->check(whole_number(8, 1'000'000));
  verb->add_option("--stride", choice->options.stride, "tokens that neighbouring windows share (128)")
      ->type_name("N")
      ->check(whole_number(0, 1'000'000));
  verb->add_option("--longest", choice->options.longest_answer, "tokens of the longest answer (15)")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000));
  verb->add_flag("--json", choice->json, "print a JSON object for each answer: answer, score, begin, end");
  add_show_flag(*verb, choice->page);
  add_precision_flag(*verb, choice->precision);
  add_threads_flag(*verb);
  verb->footer(kAnswerEnd);
  verb->callback([choice, &code] { code = answer(*choice); });
}

}  // namespace mh::cli
