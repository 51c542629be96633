// From SQuAD's JSON to questions whose answers are known to stand in their contexts.
#include "multihead/tasks/readers/squad_file.h"

#include <simdjson.h>

#include <optional>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/tasks/data/text_file.h"
#include "multihead/tasks/readers/broken_rows.h"

namespace mh {

namespace {

using simdjson::dom::element;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  fail(ErrorKind::io, "{}: {}; expected JSON as SQuAD has it: data, paragraphs, qas", printable_path(path), why);
}

simdjson::dom::array list(const element& from, const char* key, const std::string& path) {
  simdjson::dom::array out;
  if (from.at_key(key).get(out) != simdjson::SUCCESS) refuse(path, fmt::format("there is no list '{}'", key));
  return out;
}

std::optional<std::string> text_at(const element& from, const char* key) {
  std::string_view out;
  if (from.at_key(key).get(out) != simdjson::SUCCESS) return std::nullopt;
  return std::string(out);
}

// The byte where character `number` begins; nothing past the end.
std::optional<size_t> byte_of(std::string_view text, int64_t number) {
  for (size_t at = 0; at <= text.size(); ++at) {
    const bool begins = at == text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (begins && number-- == 0) return at;
  }
  return std::nullopt;
}

// Fills in the question; why it is broken, where it is.
std::string take_question(const element& from, const std::string& context, SquadQuestion& out) {
  const auto id = text_at(from, "id"), question = text_at(from, "question");
  if (!id || !question) return "no id or no question";
  out.id = *id;
  out.question = *question;
  bool impossible = false;
  if (from.at_key("is_impossible").get(impossible) == simdjson::SUCCESS && impossible) return "";
  simdjson::dom::array answers;
  if (from.at_key("answers").get(answers) != simdjson::SUCCESS) return "no answers";
  for (const element each : answers) {
    const auto text = text_at(each, "text");
    int64_t start = 0;
    if (!text || each.at_key("answer_start").get(start) != simdjson::SUCCESS) return "an answer without text or place";
    const std::optional<size_t> at = start < 0 ? std::nullopt : byte_of(context, start);
    if (!at || std::string_view(context).substr(*at, text->size()) != *text)
      return "an answer that is not where it is said to be";
    out.answers.push_back({*text, *at});
  }
  return "";
}

}  // namespace

SquadFile read_squad(const std::string& path, int64_t max_broken) {
  const TextFile file = read_text(path);
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(file.text.data(), file.text.size()).get(root))
    refuse(path, fmt::format("not JSON ({})", simdjson::error_message(error)));
  SquadFile out{.name = path};
  BrokenRows broken(path, max_broken);
  int64_t number = 0;
  for (const element article : list(root, "data", path)) {
    for (const element paragraph : list(article, "paragraphs", path)) {
      const auto context = text_at(paragraph, "context");
      if (!context) refuse(path, "a paragraph has no 'context'");
      out.contexts.push_back(*context);
      for (const element each : list(paragraph, "qas", path)) {
        SquadQuestion question{.context = out.contexts.size() - 1};
        const std::string why = take_question(each, *context, question);
        ++number;
        why.empty() ? out.questions.push_back(std::move(question)) : broken.add(number, why);
      }
    }
  }
  out.report = broken.sentences(number);
  check(!out.questions.empty(), "{}: no question is left; {}", path, fmt::join(out.report, "; "));
  return out;
}

}  // namespace mh
