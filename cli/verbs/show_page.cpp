// One sentence, run through the model once more with a recorder.
#include "cli/verbs/show_page.h"

#include <fmt/format.h>

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

}  // namespace mh::cli
