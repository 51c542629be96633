// A text, run through the model once more with a recorder.
#include "cli/verbs/show_page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/model_folder.h"
#include "cli/output_file.h"
#include "cli/say.h"
#include "multihead/base/error.h"
#include "multihead/io/durable_file.h"
#include "multihead/show/recording.h"

namespace mh::cli {

void write_page(const std::string& path, const Translator& translator, const std::string& model,
                const Candidate& candidate, const PageOptions& options) {
  check(!candidate.sentences.empty(), "show: the text is empty; expected a sentence");
  const TranslatedSentence& sentence = candidate.sentences.front();
  const Recording recording = record(translator, sentence);
  const std::string title = fmt::format("{} → {}", sentence.source, sentence.text);
  write_durably(path, page_html(page_of(recording, title, model), options));
}

void write_page(const PageOrder& order, const TextRecorder& recorder, const RecordInput& input) {
  const Recording recording = recorder(input);
  if (recording.cut)
    mention("multihead {}: the text is too long for the model; the page shows its beginning", order.verb);
  std::string title = input.text;
  if (input.pair) title += " | " + *input.pair;
  if (const auto* written = std::get_if<std::string>(&input.written)) title += " → " + *written;
  write_durably(order.path, page_html(page_of(recording, title, order.model), order.options));
}

void add_show_flag(CLI::App& verb, std::optional<std::string>& page) {
  verb.add_option("--show", page, "write a page that shows all attention of the first line to FILE")->type_name("FILE");
}

FirstPage::FirstPage(const std::optional<std::string>& page, const std::string& model, const std::string& verb) {
  if (!page) return;
  check_output("--show", *page, files_of(model));
  order_ = {.path = *page, .model = model, .verb = verb};
  recorder_ = TextRecorder::load(model);
}

void FirstPage::take(const RecordInput& input) {
  if (!recorder_ || input.text.find_first_not_of(" \t\r\n") == std::string::npos) return;
  write_page(order_, *recorder_, input);
  recorder_.reset();
}

RecordInput text_or_pair(const std::string& line) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) return {.text = line};
  return {.text = line.substr(0, tab), .pair = line.substr(tab + 1)};
}

}  // namespace mh::cli
