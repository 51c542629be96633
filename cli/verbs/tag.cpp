// `multihead tag`: lines in, the entities of each line out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/line_reader.h"
#include "cli/one_line.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "cli/verbs/show_page.h"
#include "multihead/tasks/verbs/tagger.h"

namespace mh::cli {
namespace {

constexpr const char* kTagEnd =
    "Of each entity a line is printed, begin, end, label, probability and text, with tabs between them; a blank line\n"
    "ends the entities of a line of stdin. Begin and end count characters from 0.\n"
    "\n"
    "  multihead train my-tags.toml\n"
    "  echo 'Ada Lovelace was born in London.' | multihead tag models/my-tags";

constexpr size_t kLinesAtOnce = 1024;

struct TagChoice {
  std::string model, precision = "f32";
  std::optional<std::string> page;
  bool words = false, json = false;
};

// Characters of the UTF-8 before this byte.
int64_t characters(const std::string& text, size_t bytes) {
  return std::count_if(text.begin(), text.begin() + static_cast<int64_t>(bytes),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::string lines_of(const TagChoice& choice, const std::string& text, const Tagging& found) {
  std::string out;
  if (choice.words) {
    for (size_t n = 0; n < found.words.size(); ++n) out += fmt::format("{}\t{}\n", found.words[n], found.tags[n]);
    return out + '\n';
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const TaggedSpan& span : found.entities) {
    const std::string part = text.substr(span.begin, span.end - span.begin);
    const int64_t begin = characters(text, span.begin), end = characters(text, span.end);
    if (choice.json)
      json.push_back({{"begin", begin}, {"end", end}, {"label", span.label}, {"score", span.score}, {"text", part}});
    else
      out += fmt::format("{}\t{}\t{}\t{:.4f}\t{}\n", begin, end, span.label, span.score, one_line(part));
  }
  return choice.json ? json.dump() + "\n" : out + '\n';
}

int run(const TagChoice& choice) {
  refuse_stdin_as_stdout();
  const Tagger tagger = Tagger::load(choice.model, choice.precision == "bf16" ? DType::bf16 : DType::f32);
  FirstPage page(choice.page, choice.model, "tag");
  if (isatty(STDIN_FILENO) == 1) mention("Type a sentence and press Enter; Ctrl-D ends.");
  LineReader reader(STDIN_FILENO);
  int64_t done = 0;
  for (auto lines = reader.take(kLinesAtOnce); !lines.empty(); lines = reader.take(kLinesAtOnce)) {
    std::vector<std::string> texts;
    for (const LineReader::Line& line : lines) texts.push_back(line.text);
    const std::vector<Tagging> found = tagger(texts);
    std::string out;
    for (size_t n = 0; n < lines.size(); ++n) {
      ++done;
      if (!lines[n].skipped.empty()) mention("multihead tag: skipped line {}: {}", done, lines[n].skipped);
      if (found[n].cut || lines[n].left_out > 0)
        mention("multihead tag: line {} is too long for the model; only its beginning is read", done);
      out += lines_of(choice, texts[n], found[n]);
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
    flush_output();
    for (const std::string& text : texts) page.take({.text = text});
  }
  return kDone;
}

}  // namespace

void add_tag(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("tag", "find the entities in lines from stdin: names, places, what was trained");
  auto choice = std::make_shared<TagChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  CLI::Option* words = verb->add_flag("--words", choice->words, "print every word with its tag instead, as CoNLL does");
  verb->add_flag("--json", choice->json, "print a JSON array for each line: begin, end, label, score, text")
      ->excludes(words);
  add_show_flag(*verb, choice->page);
  verb->add_option("--precision", choice->precision, "type of the products: f32 or bf16 (f32)")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "bf16"}));
  verb->footer(kTagEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
