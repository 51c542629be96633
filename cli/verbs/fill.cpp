// `multihead fill`: lines with gaps in, the likeliest tokens for each gap out.
#include <fmt/format.h>

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
#include "multihead/tasks/results/result_json.h"
#include "multihead/tasks/verbs/filler.h"

namespace mh::cli {
namespace {

constexpr const char* kFillEnd =
    "For each gap the likeliest tokens are printed: number of the gap, token, probability and the line with it, with\n"
    "tabs between them; a blank line ends a line of stdin. Gaps are written as the model's tokenizer does, [MASK] or\n"
    "<mask>; of several each is filled as if the others stayed. A line without a gap is named on stderr.\n"
    "\n"
    "  echo 'Paris is the [MASK] of France.' | multihead fill models/bert";

constexpr size_t kLinesFilledAtOnce = 256;

struct FillChoice {
  std::string model, precision = "f32";
  int64_t k = 5;
  std::optional<std::string> page;
  bool json = false;
};

std::string filled(const FillChoice& choice, const Filled& found) {
  if (choice.json) return to_json(found) + '\n';
  std::string out;
  for (size_t n = 0; n < found.gaps.size(); ++n)
    for (const Filling& one : found.gaps[n].fillings)
      out += fmt::format("{}\t{}\t{:.4f}\t{}\n", n + 1, one_line(one.token), one.score, one_line(one.text));
  return out + '\n';
}

int fill(const FillChoice& choice) {
  refuse_stdin_as_stdout();
  const Filler filler = Filler::load(choice.model, precision_named(choice.precision));
  FirstPage page(choice.page, choice.model, "fill");
  lines_through("fill", kLinesFilledAtOnce, [&](std::span<const LineReader::Line> lines, int64_t first) {
    std::vector<std::string> texts;
    for (const LineReader::Line& line : lines) texts.push_back(line.text);
    const std::vector<Filled> found = filler(texts, choice.k);
    std::string out;
    for (size_t n = 0; n < lines.size(); ++n) {
      const auto number = first + static_cast<int64_t>(n);
      if (found[n].cut && lines[n].left_out == 0) mention_cut("fill", number);
      if (found[n].gaps.empty() && lines[n].skipped.empty())
        mention("multihead fill: skipped line {}: no {} is in it", number, filler.mask());
      out += filled(choice, found[n]);
    }
    for (const std::string& text : texts) page.take({.text = text});
    return out;
  });
  return kDone;
}

}  // namespace

void add_fill(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("fill", "find the likeliest words for the gaps in lines from stdin");
  auto choice = std::make_shared<FillChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("-k", choice->k, "tokens for each gap (5)")->type_name("N")->check(whole_number(1, 1000));
  verb->add_flag("--json", choice->json, "print a JSON array for each line: of each gap its tokens");
  add_show_flag(*verb, choice->page);
  add_precision_flag(*verb, choice->precision);
  add_threads_flag(*verb);
  verb->footer(kFillEnd);
  verb->callback([choice, &code] { code = fill(*choice); });
}

}  // namespace mh::cli
