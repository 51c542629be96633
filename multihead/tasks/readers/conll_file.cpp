// Lines to columns, and those to sentences.
#include "multihead/tasks/readers/conll_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/tasks/data/text_file.h"
#include "multihead/tasks/readers/broken_rows.h"
#include "multihead/text/text_lines.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr std::string_view kGaps = " \t";

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t at = line.find_first_not_of(kGaps); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kGaps, at), line.size());
    out.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kGaps, end);
  }
  return out;
}

}  // namespace

TaggedSentences read_conll(const std::string& path, const ConllOptions& options) {
  const auto fits = [](int64_t column) { return column >= 1 || column == -1; };
  check(fits(options.word_column) && fits(options.tag_column),
        "{}: columns {} and {} are asked for; expected numbers from 1, or -1 for the last", path, options.word_column,
        options.tag_column);
  const TextFile file = read_text(path);
  std::string_view rest = file.text;
  BrokenRows broken(path, options.max_broken);
  TaggedSentences out{.name = path};
  TaggedSentence now;
  bool whole = true;
  int64_t line_number = 0;
  const auto end_sentence = [&] {
    if (whole && !now.words.empty()) out.sentences.push_back(std::exchange(now, {}));
    now = {};
    whole = true;
  };
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    ++line_number;
    const std::vector<std::string_view> columns = columns_of(line);
    if (columns.empty()) {
      end_sentence();
      continue;
    }
    if (columns[0].starts_with("-DOCSTART-")) continue;
    const auto count = static_cast<int64_t>(columns.size());
    if (now.line == 0) now.line = line_number;
    const auto at = [&](int64_t column) { return static_cast<size_t>(column == -1 ? count - 1 : column - 1); };
    const int64_t missing = options.word_column > count ? options.word_column : options.tag_column;
    if (options.word_column > count || options.tag_column > count) {
      broken.add(line_number,
                 fmt::format("{} column{}; expected text in column {}", count, count == 1 ? "" : "s", missing));
      whole = false;
    } else if (utf8_error(line)) {
      broken.add(line_number, "not UTF-8; a file in another encoding is converted by iconv -f WINDOWS-1252 -t UTF-8");
      whole = false;
    } else {
      now.words.emplace_back(columns[at(options.word_column)]);
      now.tags.emplace_back(columns[at(options.tag_column)]);
    }
  }
  end_sentence();
  out.report = broken.sentences(line_number);
  check(line_number > 0, "{}: empty; expected lines with a word and its tag", path);
  check(!out.sentences.empty(), "{}: no sentence is left; {}", path, fmt::join(out.report, "; "));
  return out;
}

}  // namespace mh
