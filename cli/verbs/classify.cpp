// `multihead classify`: lines in, a label and its probability out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cli/line_reader.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "cli/verbs/show_page.h"
#include "multihead/tasks/verbs/classifier.h"

namespace mh::cli {
namespace {

constexpr const char* kClassifyEnd =
    "A line of a model that reads pairs holds both texts, with a tab between them. A line that is not UTF-8 gets an\n"
    "empty line.\n"
    "\n"
    "  multihead train configs/classify/mr.toml\n"
    "  echo 'A film that nobody needs.' | multihead classify models/mr\n"
    "  multihead eval models/mr data/mr/test.tsv --confusion";

constexpr size_t kMostLines = 1024;  // that are read before the first is answered, where they are there

struct ClassifyChoice {
  std::string model, precision = "f32";
  std::optional<std::string> page;
  bool all = false, json = false;
};

// The labels, most probable first.
std::vector<size_t> by_score(const Classification& one) {
  std::vector<size_t> order(one.scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return one.scores[a] > one.scores[b]; });
  return order;
}

std::string line_of(const ClassifyChoice& choice, const Classification& one, const std::vector<std::string>& labels) {
  if (choice.json) {
    nlohmann::ordered_json out{{"label", one.label}, {"score", one.score}};
    if (choice.all)
      for (const size_t n : by_score(one)) out["scores"][labels[n]] = one.scores[n];
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  if (!choice.all) return fmt::format("{}\t{:.4f}", one.label, one.score);
  std::string out;
  for (const size_t n : by_score(one))
    out += fmt::format("{}{}\t{:.4f}", out.empty() ? "" : "\t", labels[n], one.scores[n]);
  return out;
}

int run(const ClassifyChoice& choice) {
  refuse_stdin_as_stdout();
  const Classifier classifier = Classifier::load(choice.model, choice.precision == "bf16" ? DType::bf16 : DType::f32);
  FirstPage page(choice.page, choice.model, "classify");
  if (isatty(STDIN_FILENO) == 1) mention("Type a text and press Enter; Ctrl-D ends.");
  LineReader reader(STDIN_FILENO);
  int64_t done = 0;
  for (auto lines = reader.take(kMostLines); !lines.empty(); lines = reader.take(kMostLines)) {
    std::vector<std::string> texts;
    for (const LineReader::Line& line : lines)
      if (line.skipped.empty()) texts.push_back(line.text);
    const std::vector<Classification> found = classifier(texts);
    size_t next = 0;
    std::string out;
    for (const LineReader::Line& line : lines) {
      ++done;
      if (!line.skipped.empty()) {
        mention("multihead classify: skipped line {}: {}", done, line.skipped);
      } else {
        if (found[next].cut || line.left_out > 0)
          mention("multihead classify: line {} is too long for the model; only its beginning is read", done);
        out += line_of(choice, found[next++], classifier.labels());
      }
      out += '\n';
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
    flush_output();
    for (const std::string& text : texts) page.take(text_or_pair(text));
  }
  return kDone;
}

}  // namespace

void add_classify(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("classify", "say of lines from stdin which label they have");
  auto choice = std::make_shared<ClassifyChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_flag("--all", choice->all, "print every label with its probability, the most probable first");
  verb->add_flag("--json", choice->json, "print a JSON object for each line: label, score, with --all all scores");
  add_show_flag(*verb, choice->page);
  verb->add_option("--precision", choice->precision, "type of the products: f32 or bf16 (f32)")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "bf16"}));
  verb->footer(kClassifyEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
