// `multihead show`: what a model's attention looked at, as one page for a browser.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/line_reader.h"
#include "cli/model_folder.h"
#include "cli/output_file.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/show_page.h"
#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/generate/text/translator.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/show/text_recorder.h"

namespace mh::cli {
namespace {

constexpr const char* kShowEnd =
    "The model reads TEXT (without one: the first line of stdin) as one sentence; a model that writes one text from\n"
    "another (a translator, T5, BART) writes its own, or reads what --written says.\n"
    "The page shows every head: of the encoder, the decoder and the attention between them. It is one file that needs\n"
    "nothing else: no network, no server; a browser opens it by double click. Above 40 million weights it holds a\n"
    "picture of each head, the 16 largest weights of each token, and the heads of --heads.\n"
    "\n"
    "  multihead show models/en-de 'The dog sleeps because it is tired.' -o page.html\n"
    "  multihead show ~/models/minilm 'The dog sleeps because it is tired.' -o page.html\n"
    "  multihead show models/en-de --file text.en --heads '2.3,3.*' -o page.html";

struct ShowChoice {
  std::string model;
  std::vector<std::string> words;
  std::optional<std::string> file, heads, written;
  std::string output;
};

std::string text_of(const ShowChoice& choice) {
  if (!choice.words.empty()) return fmt::format("{}", fmt::join(choice.words, " "));
  std::FILE* file = choice.file ? std::fopen(choice.file->c_str(), "rb") : nullptr;
  if (choice.file && !file)
    fail(ErrorKind::io, "{} cannot be read: {}", printable_path(*choice.file), std::strerror(errno));
  if (!choice.file && isatty(STDIN_FILENO) == 1) mention("Type a sentence and press Enter.");
  LineReader reader(file ? fileno(file) : STDIN_FILENO);
  const std::vector<LineReader::Line> lines = reader.take(1);
  if (file) std::fclose(file);
  check(!lines.empty(), "show: there is no text; expected it behind MODEL, in --file FILE or on stdin");
  check(lines[0].skipped.empty(), "show: {}", lines[0].skipped);
  return lines[0].text;
}

// Of our own: Hugging Face's are recorded as any other model.
bool is_translator(const std::string& folder) {
  const bool sentence_transformer = std::filesystem::exists(std::filesystem::path(folder) / "modules.json");
  if (sentence_transformer) return false;
  const FolderFacts facts = folder_facts(folder);
  return facts.layout == FolderFacts::Layout::ours && facts.head == HeadKind::seq2seq_lm;
}

void show_translation(const ShowChoice& choice, const PageOptions& options) {
  const Translator translator = Translator::load(choice.model);
  const std::string text = text_of(choice);
  const Translation translation = translator.translate({text}, {}, {.split = false}).front();
  if (translation.cut) mention("multihead show: the text is too long for the model; the page shows its beginning");
  write_page(choice.output, translator, choice.model, translation.candidates.front(), options);
}

int run(const ShowChoice& choice) {
  check(choice.words.empty() || !choice.file, "show: both TEXT and --file are given; expected one of them");
  PageOptions options;
  if (choice.heads) options.chosen = chosen_heads(*choice.heads);
  std::vector<std::string> inputs = files_of(choice.model);
  if (choice.file) inputs.push_back(*choice.file);
  check_output("--output", choice.output, inputs);
  if (is_translator(choice.model)) {
    check(!choice.written, "show: --written goes with a model of Hugging Face's form");
    check_recorded(choice.model);
    show_translation(choice, options);
    return kDone;
  }
  const TextRecorder recorder = TextRecorder::load(choice.model);
  RecordInput input{.text = text_of(choice)};
  if (choice.written) input.written = *choice.written;
  write_page({.path = choice.output, .model = choice.model, .verb = "show", .options = options}, recorder, input);
  return kDone;
}

}  // namespace

void add_show(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("show", "write a page that shows what a model's attention looked at");
  auto choice = std::make_shared<ShowChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("TEXT", choice->words, "what the model reads; several words are joined")->type_name("");
  verb->add_option("--file", choice->file, "read the first line of FILE in place of TEXT")->type_name("FILE");
  verb->add_option("-o,--output", choice->output, "the page to write")->type_name("FILE")->required();
  verb->add_option("--written", choice->written, "what the decoder of a model of Hugging Face's form has written")
      ->type_name("TEXT");
  verb->add_option("--heads", choice->heads, "store all weights of these heads of a long text: 5.3,7.*, from 1")
      ->type_name("HEADS");
  verb->footer(kShowEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
