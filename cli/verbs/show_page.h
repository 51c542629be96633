// Writes pages of attention: of a translation, and for the flag --show of the other verbs.
#pragma once

#include <optional>
#include <string>

#include "multihead/generate/text/translator.h"
#include "multihead/show/page.h"
#include "multihead/show/text_recorder.h"

namespace CLI {
class App;
}

namespace mh::cli {

// Of the candidate's first sentence. Throws: invalid_argument where it has none (a line of white space); as page_html
// and write_durably.
void write_page(const std::string& path, const Translator& translator, const std::string& model,
                const Candidate& candidate, const PageOptions& options);

// What a page is made of besides the recorder and what it reads; `verb` says on stderr where only the beginning of the
// text is shown.
struct PageOrder {
  std::string path, model, verb;
  PageOptions options{};
};
// Throws: as TextRecorder, page_html and write_durably.
void write_page(const PageOrder& order, const TextRecorder& recorder, const RecordInput& input);

// Adds --show to `verb`.
void add_show_flag(CLI::App& verb, std::optional<std::string>& page);

// The page of --show: of the first text that is not blank.
class FirstPage {
 public:
  // Looks at the file and loads the model once more, where the flag is given. Throws: as check_output and
  // TextRecorder::load.
  FirstPage(const std::optional<std::string>& page, const std::string& model, const std::string& verb);

  // Throws: as write_page.
  void take(const RecordInput& input);

 private:
  PageOrder order_{};
  std::optional<TextRecorder> recorder_{};
};

// A text, or with a tab in it a pair.
RecordInput text_or_pair(const std::string& line);

}  // namespace mh::cli
