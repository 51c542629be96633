// `multihead tag`: lines in, the entities of each line out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/lines_through.h"
#include "cli/one_line.h"
#include "cli/standard_streams.h"
#include "cli/threads_flag.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/show_page.h"
#include "multihead/tasks/results/result_json.h"
#include "multihead/tasks/verbs/tagger.h"

namespace mh::cli {
namespace {

constexpr const char* kTagEnd =
    "Of each entity a line is printed, begin, end, label, probability and text, with tabs between them; a blank line\n"
    "ends the entities of a line of stdin. Begin and end count characters from 0.\n"
    "A model of Hugging Face's reads the line as it is; a line that is longer than it reads is cut into windows that\n"
    "overlap. --aggregation says how the labels of tokens become those of entities: a word has that of its first token\n"
    "(first), of its surest (max), or the one that is likeliest on average; simple takes tokens for words, and with none\n"
    "every token is printed that has a label other than O. A model of multihead's own judges words by their first\n"
    "tokens.\n"
    "\n"
    "  multihead train my-tags.toml\n"
    "  echo 'Ada Lovelace was born in London.' | multihead tag models/my-tags";

constexpr size_t kLinesTaggedAtOnce = 1024;
constexpr std::array<const char*, 5> kAggregations{"none", "simple", "first", "average",
                                                   "max"};  // as the enum has them

struct TagChoice {
  std::string model, precision = "f32", aggregation = "first";
  std::optional<std::string> page;
  TagOptions options{};
  bool words = false, json = false;
};

std::string lines_of(const TagChoice& choice, const std::string& text, const Tagging& found) {
  std::string out;
  if (choice.words) {
    for (size_t n = 0; n < found.words.size(); ++n)
      out += fmt::format("{}\t{}\n", one_line(found.words[n]), found.tags[n]);
    return out + '\n';
  }
  if (choice.json) return to_json(found, text) + '\n';
  for (const TaggedSpan& span : found.entities)
    out +=
        fmt::format("{}\t{}\t{}\t{:.4f}\t{}\n", characters_before(text, span.begin), characters_before(text, span.end),
                    span.label, span.score, one_line(text.substr(span.begin, span.end - span.begin)));
  return out + '\n';
}

int tag(const TagChoice& choice) {
  refuse_stdin_as_stdout();
  const Tagger tagger = Tagger::load(choice.model, precision_named(choice.precision));
  mention_unused("tag", choice.model, tagger.unused());
  FirstPage page(choice.page, choice.model, "tag");
  lines_through("tag", kLinesTaggedAtOnce, [&](std::span<const LineReader::Line> lines, int64_t first) {
    std::vector<std::string> texts;
    for (const LineReader::Line& line : lines) texts.push_back(line.text);
    const std::vector<Tagging> found = tagger(texts, choice.options);
    std::string out;
    for (size_t n = 0; n < lines.size(); ++n) {
      if (found[n].cut && lines[n].left_out == 0) mention_cut("tag", first + static_cast<int64_t>(n));
      out += lines_of(choice, texts[n], found[n]);
    }
    for (const std::string& text : texts) page.take({.text = text});
    return out;
  });
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
  verb->add_option("--aggregation", choice->aggregation, "how tokens' labels become entities' (first)")
      ->type_name("HOW")
      ->check(one_of({kAggregations.begin(), kAggregations.end()}));
  verb->add_option("--stride", choice->options.stride, "tokens that neighbouring windows of a long line share (128)")
      ->type_name("N")
      ->check(whole_number(0, 1'000'000));
  add_precision_flag(*verb, choice->precision);
  add_threads_flag(*verb);
  verb->footer(kTagEnd);
  verb->callback([choice, &code] {
    const auto at = std::find(kAggregations.begin(), kAggregations.end(), choice->aggregation);
    choice->options.aggregation = static_cast<Aggregation>(at - kAggregations.begin());
    code = tag(*choice);
  });
}

}  // namespace mh::cli
