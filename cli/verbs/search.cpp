// `multihead search`: the lines of a file that are most like a query, by their vectors.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/lines_through.h"
#include "cli/one_line.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/threads_flag.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "multihead/tasks/verbs/document_index.h"

namespace mh::cli {
namespace {

constexpr const char* kSearchEnd =
    "Each line of DOCUMENTS is a document. Their vectors are kept in an index, DOCUMENTS.npy, which is made anew when the\n"
    "documents or the model are others. Printed are score, number and text of the best lines, with tabs between them;\n"
    "without --query each line of stdin is one, and a blank line ends its results. Every line is compared: results are\n"
    "exact.\n"
    "\n"
    "  multihead search models/minilm docs.txt --query 'I lost my card' -k 3";

constexpr size_t kQueriesAtOnce = 256;

struct SearchChoice {
  std::string model, documents, index, precision = "f32";
  std::vector<std::string> queries;
  int64_t k = 5;
  bool json = false;
};

std::string results_of(const SearchChoice& choice, const std::vector<FoundLine>& found) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::string out;
  for (const FoundLine& one : found) {
    if (choice.json)
      json.push_back({{"score", one.score}, {"line", one.number}, {"text", one.text}});
    else
      out += fmt::format("{:.4f}\t{}\t{}\n", one.score, one.number, one_line(one.text));
  }
  return choice.json ? json.dump() + '\n' : out;
}

int search(const SearchChoice& choice) {
  refuse_stdin_as_stdout();
  const std::string index = choice.index.empty() ? choice.documents + ".npy" : choice.index;
  const Embedder embedder = Embedder::load(choice.model, precision_named(choice.precision));
  const DocumentIndex documents =
      DocumentIndex::open(embedder, choice.documents, index,
                          [](const std::string& sentence) { mention("multihead search: {}", sentence); });
  if (!choice.queries.empty()) {
    std::string out;
    const auto found = documents(choice.queries, choice.k);
    for (size_t n = 0; n < found.size(); ++n) out += (n > 0 && !choice.json ? "\n" : "") + results_of(choice, found[n]);
    std::fwrite(out.data(), 1, out.size(), stdout);
    flush_output();
    return kDone;
  }
  lines_through("search", kQueriesAtOnce, [&](std::span<const LineReader::Line> lines, int64_t) {
    std::vector<std::string> queries;
    for (const LineReader::Line& line : lines) queries.push_back(line.text);
    const auto found = documents(queries, choice.k);
    std::string out;
    for (size_t n = 0; n < lines.size(); ++n)
      out += (lines[n].skipped.empty() ? results_of(choice, found[n])
              : choice.json            ? "[]\n"
                                       : "") +
             (choice.json ? "" : "\n");
    return out;
  });
  return kDone;
}

}  // namespace

void add_search(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("search", "find the lines of a file that mean most nearly what a query says");
  auto choice = std::make_shared<SearchChoice>();
  verb->add_option("MODEL", choice->model, "folder of an embedder")->type_name("")->required();
  verb->add_option("DOCUMENTS", choice->documents, "a text file, a document a line")->type_name("")->required();
  verb->add_option("-q,--query", choice->queries, "what to look for; may be given several times")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option("-k", choice->k, "results for each query (5)")->type_name("N")->check(whole_number(1, 1'000'000));
  verb->add_option("--index", choice->index, "the index, instead of DOCUMENTS.npy")->type_name("FILE");
  verb->add_flag("--json", choice->json, "print a JSON array for each query: score, line, text");
  add_precision_flag(*verb, choice->precision);
  add_threads_flag(*verb);
  verb->footer(kSearchEnd);
  verb->callback([choice, &code] { code = search(*choice); });
}

}  // namespace mh::cli
