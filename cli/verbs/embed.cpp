// `multihead embed`: lines in, a vector for each out, as .npy or as text.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/lines_through.h"
#include "cli/model_folder.h"
#include "cli/output_file.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/threads_flag.h"
#include "cli/verbs.h"
#include "cli/verbs/show_page.h"
#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/array_file.h"
#include "multihead/io/durable_file.h"
#include "multihead/tasks/verbs/embedder.h"

namespace mh::cli {
namespace {

constexpr const char* kEmbedEnd =
    "MODEL is a folder of sentence-transformers' (MiniLM, E5, BGE, …) or any encoder, whose rows are averaged. A line\n"
    "that is not UTF-8 has a vector of zeros; with --tsv, an empty line.\n"
    "\n"
    "  printf 'A cat sleeps.\\nStocks fell.\\n' | multihead embed models/minilm > vectors.npy\n"
    "  python3 -c 'import numpy; print(numpy.load(\"vectors.npy\").shape)'        # (2, 384)";

constexpr size_t kLinesEmbeddedAtOnce = 4096;

struct EmbedChoice {
  std::string model, output, precision = "f32";
  std::optional<std::string> prompt, prompt_name, page;
  bool tsv = false;
};

std::string prompt_of(const EmbedChoice& choice, const Embedder& embedder) {
  if (choice.prompt) return *choice.prompt;
  return choice.prompt_name ? embedder.prompt(*choice.prompt_name) : embedder.default_prompt();
}

std::string tsv_of(const float* vector, int64_t width) {
  return fmt::format("{}\n", fmt::join(std::span(vector, static_cast<size_t>(width)), "\t"));
}

// The vectors of the lines one behind the other, or their text.
std::string embedded(const EmbedChoice& choice, const Embedder& embedder, const std::string& prompt,
                     std::span<const LineReader::Line> lines, int64_t first) {
  std::vector<std::string> texts;
  for (const LineReader::Line& line : lines) texts.push_back(line.text);
  const Embeddings found = embedder(texts, prompt);
  for (const size_t n : found.cut)
    if (lines[n].left_out == 0) mention_cut("embed", first + static_cast<int64_t>(n));
  std::string out;
  for (size_t n = 0; n < lines.size(); ++n) {
    const float* vector = found.vectors.data<float>() + static_cast<int64_t>(n) * embedder.width();
    const size_t bytes = static_cast<size_t>(embedder.width()) * sizeof(float);
    if (choice.tsv) {
      out += lines[n].skipped.empty() ? tsv_of(vector, embedder.width()) : "\n";
    } else if (lines[n].skipped.empty()) {
      out.append(reinterpret_cast<const char*>(vector), bytes);
    } else {
      out.append(bytes, '\0');
    }
  }
  return out;
}

int embed(const EmbedChoice& choice) {
  refuse_stdin_as_stdout();
  if (choice.output.empty() && !choice.tsv && isatty(STDOUT_FILENO) == 1)
    fail(ErrorKind::invalid_argument, "embed: a .npy file is not for a terminal; expected --tsv, --output or '> FILE'");
  if (!choice.output.empty()) check_output("--output", choice.output, files_of(choice.model));
  const Embedder embedder = Embedder::load(choice.model, precision_named(choice.precision));
  if (embedder.is_plain())
    mention("multihead embed: {} has no modules.json; the mean of a text's tokens is its vector",
            printable_path(choice.model));
  const std::string prompt = prompt_of(choice, embedder);
  FirstPage page(choice.page, choice.model, "embed");
  const bool streams = choice.tsv && choice.output.empty();
  std::string all;  // .npy says first how many there are
  int64_t count = 0;
  lines_through("embed", kLinesEmbeddedAtOnce, [&](std::span<const LineReader::Line> lines, int64_t first) {
    std::string some = embedded(choice, embedder, prompt, lines, first);
    count += static_cast<int64_t>(lines.size());
    for (const LineReader::Line& line : lines)
      if (!line.text.empty()) page.take({.text = prompt + line.text});
    if (streams) return some;
    all += some;
    return std::string();
  });
  if (streams) return kDone;
  if (!choice.tsv) all.insert(0, npy_prefix({count, embedder.width()}, DType::f32));
  if (!choice.output.empty()) {
    write_durably(choice.output, all);
  } else {
    std::fwrite(all.data(), 1, all.size(), stdout);
    flush_output();
  }
  return kDone;
}

}  // namespace

void add_embed(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("embed", "turn lines from stdin into vectors, to search or to compare");
  auto choice = std::make_shared<EmbedChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("-o,--output", choice->output, "write to this file instead of stdout")->type_name("FILE");
  verb->add_flag("--tsv", choice->tsv, "print numbers with tabs between them, a line for each line, instead of .npy");
  CLI::Option* prompt =
      verb->add_option("--prompt", choice->prompt, "text before each line, \"query: \"")->type_name("TEXT");
  verb->add_option("--prompt-name", choice->prompt_name, "the same, by its name in the folder: query, document")
      ->type_name("NAME")
      ->excludes(prompt);
  add_show_flag(*verb, choice->page);
  add_precision_flag(*verb, choice->precision);
  add_threads_flag(*verb);
  verb->footer(kEmbedEnd);
  verb->callback([choice, &code] { code = embed(*choice); });
}

}  // namespace mh::cli
