// `multihead tokenizer`: trains a byte-level BPE tokenizer; turns lines of text into ids and back.
#include "multihead/text/tokenizer.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/io/durable_file.h"
#include "multihead/tasks/data/tsv_file.h"
#include "multihead/text/text_lines.h"

namespace mh::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct VocabularyChoice {
  std::vector<std::string> files;
  std::string out;
  std::vector<int64_t> columns;  // from 1; empty for all
  std::string form = "none";     // of Unicode
  bool no_prefix_space = false;
  BpeOptions options;
};

struct CodeChoice {
  std::string tokenizer;
  bool tokens = false, time = false;
};

void read_texts(const std::string& path, const std::vector<int64_t>& columns, std::vector<std::string>& texts) {
  TsvFile file(path);
  while (file.next())
    if (file.split(columns)) texts.insert(texts.end(), file.fields().begin(), file.fields().end());
  if (file.broken().count() > 0) mention("multihead tokenizer train: {}", file.broken().sentence(path, file.number()));
}

int train(VocabularyChoice choice) {
  check_output("--out", choice.out, choice.files);
  std::vector<std::string> texts;
  for (const std::string& path : choice.files) read_texts(path, choice.columns, texts);
  const bool any = std::any_of(texts.begin(), texts.end(), [](const std::string& text) { return !text.empty(); });
  check(any, "tokenizer train: there is no text in {}", fmt::join(choice.files, ", "));

  choice.options.prefix_space = !choice.no_prefix_space;
  choice.options.normalisation = choice.form == "nfc"    ? Normalisation::nfc
                                 : choice.form == "nfkc" ? Normalisation::nfkc
                                                         : Normalisation::none;
  Tokenizer tokenizer;
  const Clock::time_point start = Clock::now();
  {
    Progress progress("tokens");
    choice.options.progress = [&](int64_t done, int64_t total) { progress.at(done, total, "merging"); };
    tokenizer = train_bpe(texts, choice.options);
  }
  write_durably(choice.out, tokenizer.json());
  mention("{}: {} tokens from {} texts in {:.2f} s", choice.out, tokenizer.size(), texts.size(),
          std::chrono::duration<double>(Clock::now() - start).count());
  return kDone;
}

// Each line of stdin through `turn`, which puts its answer into the second string, to stdout.
void for_each_line(const char* verb, const std::function<void(const std::string&, std::string&)>& turn) {
  refuse_stdin_as_stdout();
  std::ios::sync_with_stdio(false);
  std::string line, answer;
  for (bool first = true; std::getline(std::cin, line); first = false) {
    if (first) line.erase(0, line.size() - text_after_mark(line, "stdin").size());
    answer.clear();
    turn(line, answer);
    answer.push_back('\n');
    if (std::fwrite(answer.data(), 1, answer.size(), stdout) != answer.size()) break;
  }
  if (std::cin.bad()) fail(ErrorKind::io, "{}: cannot read the input: {}", verb, std::strerror(errno));
  flush_output();
}

int64_t count_words(std::string_view line) {
  int64_t words = 0;
  bool inside = false;
  for (const char c : line) {
    const bool blank = c == ' ' || c == '\t';
    words += !blank && !inside;
    inside = !blank;
  }
  return words;
}

int encode(const CodeChoice& choice) {
  const Tokenizer tokenizer = Tokenizer::load(choice.tokenizer);
  std::vector<int32_t> ids;
  int64_t words = 0;
  Clock::duration spent{};
  for_each_line("tokenizer encode", [&](const std::string& line, std::string& answer) {
    ids.clear();
    const Clock::time_point start = Clock::now();
    tokenizer.encode(line, ids);
    spent += Clock::now() - start;
    if (choice.time) words += count_words(line);
    auto out = std::back_inserter(answer);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i > 0) answer.push_back(' ');
      if (choice.tokens) {
        answer += tokenizer.token(ids[i]);
      } else {
        fmt::format_to(out, "{}", ids[i]);
      }
    }
  });
  const double seconds = std::chrono::duration<double>(spent).count();
  if (choice.time)
    mention("{} words in {:.3f} s: {:.2f} M words/s", words, seconds,
            static_cast<double>(words) / std::max(seconds, 1e-9) * 1e-6);
  return kDone;
}

void read_ids(std::string_view line, int64_t number, std::vector<int32_t>& ids) {
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty()) return;
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    int32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    check(error == std::errc() && end == word.data() + word.size(),
          "tokenizer decode: line {}: '{}' is not a token id; expected numbers parted by spaces", number, word);
    ids.push_back(id);
    line.remove_prefix(word.size());
  }
}

int decode(const CodeChoice& choice) {
  const Tokenizer tokenizer = Tokenizer::load(choice.tokenizer);
  std::vector<int32_t> ids;
  int64_t number = 0;
  for_each_line("tokenizer decode", [&](const std::string& line, std::string& answer) {
    ids.clear();
    read_ids(line, ++number, ids);
    answer = tokenizer.decode(ids);
  });
  return kDone;
}

void add_trainer(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("train", "learn a byte-level BPE tokenizer from text files");
  auto choice = std::make_shared<VocabularyChoice>();
  BpeOptions& options = choice->options;
  verb->add_option("FILES", choice->files,
                   "UTF-8 text, plain, gzip or xz, a text each line; tabs part a line into texts")
      ->required()
      ->type_name("");
  verb->add_option("--out", choice->out, "where the tokenizer goes")->required()->type_name("FILE");
  verb->add_option("--vocabulary", options.vocabulary, "how many tokens, special tokens and bytes among them")
      ->type_name("N")
      ->check(whole_number(1, 10'000'000))
      ->capture_default_str();
  verb->add_option("--columns", choice->columns, "the columns of text to learn from, as in 1,2; unset: all of them")
      ->delimiter(',')
      ->type_name("LIST")
      ->check(whole_number(1, 1000000));
  verb->add_flag("--lowercase", options.lowercase, "make all text lower-case");
  verb->add_option("--normalise", choice->form, "Unicode normalisation of all text (none)")
      ->type_name("FORM")
      ->check(one_of({"none", "nfc", "nfkc"}));
  verb->add_flag("--no-prefix-space", choice->no_prefix_space, "put no space before the first word of a text");
  verb->add_option("--min-frequency", options.min_frequency, "merge pairs seen at least this often")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  verb->footer("Writes tokenizer.json in Hugging Face's format. Progress goes to stderr.");
  verb->callback([choice, &code] { code = train(*choice); });
}

CLI::App* add_coder(CLI::App& app, const char* name, const char* about, const std::shared_ptr<CodeChoice>& choice) {
  CLI::App* verb = app.add_subcommand(name, about);
  verb->add_option("TOKENIZER", choice->tokenizer, "a tokenizer.json")->required()->type_name("");
  return verb;
}

}  // namespace

void add_tokenizer(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("tokenizer", "train a tokenizer; turn text into token ids and back");
  verb->footer(
      "  multihead tokenizer train text.en text.de --out tokenizer.json\n"
      "  multihead tokenizer encode tokenizer.json < text.en");
  add_trainer(*verb, code);

  auto coding = std::make_shared<CodeChoice>();
  CLI::App* coder = add_coder(*verb, "encode", "lines of text on stdin to lines of token ids on stdout", coding);
  coder->add_flag("--tokens", coding->tokens, "print tokens instead of their ids");
  coder->add_flag("--time", coding->time, "say on stderr how many words a second were encoded");
  coder->footer("No special tokens are added, and none are found in text: \"</s>\" is four characters.");
  coder->callback([coding, &code] { code = encode(*coding); });

  auto decoding = std::make_shared<CodeChoice>();
  CLI::App* decoder = add_coder(*verb, "decode", "lines of token ids on stdin to lines of text on stdout", decoding);
  decoder->footer("Special tokens are skipped.");
  decoder->callback([decoding, &code] { code = decode(*decoding); });
}

}  // namespace mh::cli
