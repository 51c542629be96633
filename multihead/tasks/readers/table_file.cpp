// Rows and their columns.
#include "multihead/tasks/readers/table_file.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>

#include "multihead/base/error.h"
#include "multihead/base/nearest.h"
#include "multihead/base/printable.h"
#include "multihead/tasks/data/text_file.h"
#include "multihead/text/text_lines.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr size_t kLongestRow = size_t{1} << 24;  // bytes: one unclosed quote must not swallow a large file

bool is_blank_row(std::string_view text) { return text.find_first_not_of(" \t\r\v\f\n") == std::string_view::npos; }

// The number a column is asked for by; 0 for a name.
int64_t column_number(const std::string& column) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(column.data(), column.data() + column.size(), number);
  return error == std::errc() && end == column.data() + column.size() && number >= 1 ? number : 0;
}

std::string text_of(const simdjson::dom::element& value) {
  if (std::string_view text; value.get(text) == simdjson::SUCCESS) return std::string(text);
  return simdjson::minify(value);
}

}  // namespace

TableFormat format_of_name(std::string_view path) {
  for (const std::string_view packed : {".gz", ".xz"})
    if (path.ends_with(packed)) path.remove_suffix(packed.size());
  if (path.ends_with(".csv")) return TableFormat::csv;
  return path.ends_with(".jsonl") || path.ends_with(".ndjson") ? TableFormat::jsonl : TableFormat::tsv;
}

TableFile::TableFile(const std::string& path, const TableOptions& options)
    : path_(path),
      options_(options),
      format_(options.format == TableFormat::by_name ? format_of_name(path) : options.format),
      broken_(path, options.max_broken) {
  const TextFile file = read_text(path);
  keeper_ = file.keeper;
  rest_ = file.text;
  bool named = options.header;
  for (const std::string& column : options.columns) {
    numbers_.push_back(column_number(column));
    named = named || numbers_.back() == 0;
    check(format_ != TableFormat::jsonl || numbers_.back() == 0,
          "{}: JSON lines have keys, and column {} is asked for; expected the name of a key", printable_path(path),
          column);
  }
  if (named && format_ != TableFormat::jsonl) take_header();
}

void TableFile::take_header() {
  std::string why;
  check(read_row(why) && why.empty(), "{}: {}; expected a first row with the names of the columns",
        printable_path(path_), why.empty() ? "it is empty" : why);
  for (size_t n = 0; n < numbers_.size(); ++n) {
    if (numbers_[n] != 0) continue;
    const std::string& wanted = options_.columns[n];
    const auto at = std::find(cells_.begin(), cells_.end(), wanted);
    const auto meant = nearest(wanted, cells_);
    check(at != cells_.end(), "{}:1: there is no column {}; {}", printable_path(path_), printable(wanted),
          meant ? fmt::format("did you mean {}?", printable(*meant))
                : fmt::format("the first row has {} columns, the first of them {}", cells_.size(),
                              printable(cells_.front())));
    numbers_[n] = at - cells_.begin() + 1;
  }
}

bool TableFile::next() {
  for (std::string why; read_row(why);) {
    ++rows_;
    if (why.empty()) why = take_columns();
    if (why.empty()) return true;
    broken_.add(line_, why);
  }
  return false;
}

bool TableFile::read_row(std::string& why) {
  why.clear();
  if (format_ == TableFormat::csv) return read_csv(why);
  while (!rest_.empty()) {
    const std::string_view text = next_line(rest_);
    line_ = next_line_++;
    if (is_blank_row(text)) continue;
    if (format_ == TableFormat::jsonl) {
      why = json_cells(text);
      return true;
    }
    cells_.clear();
    for (std::string_view left = text;;) {
      const size_t tab = left.find('\t');
      cells_.emplace_back(left.substr(0, tab));
      if (tab == std::string_view::npos) return true;
      left.remove_prefix(tab + 1);
    }
  }
  return false;
}

bool TableFile::read_csv(std::string& why) {
  while (!rest_.empty()) {
    line_ = next_line_;
    std::string_view text = rest_;
    int64_t lines = 0;
    why = csv_cells(text, lines);
    if (why.empty()) {
      rest_ = text;
      next_line_ += lines;
      if (cells_.size() == 1 && is_blank_row(cells_[0])) continue;
    } else {  // what follows is read as if the line had been whole
      next_line(rest_);
      ++next_line_;
    }
    return true;
  }
  return false;
}

// Takes one row off `text` and counts its lines; why it is broken, where it is.
std::string TableFile::csv_cells(std::string_view& text, int64_t& lines) {
  cells_.assign(1, "");
  bool quoted = false, closed = false;
  for (size_t at = 0;; ++at) {
    if (at == text.size() || at == kLongestRow) {
      if (quoted) return "a quote is opened and not closed";
      if (at < text.size()) return fmt::format("more than {} bytes", kLongestRow);
      text = {};
      ++lines;
      return "";
    }
    const char c = text[at];
    if (c == '\n') ++lines;
    if (quoted) {
      if (c != '"') {
        cells_.back() += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        cells_.back() += text[++at];
      } else {
        quoted = false;
        closed = true;
      }
    } else if (c == '\n') {
      if (!closed && cells_.back().ends_with('\r')) cells_.back().pop_back();
      text.remove_prefix(at + 1);
      return "";
    } else if (c == ',') {
      cells_.emplace_back();
      closed = false;
    } else if (c == '"' && cells_.back().empty() && !closed) {
      quoted = true;
    } else if (closed && c != '\r') {
      return "text follows a closed quote";
    } else if (!closed) {
      cells_.back() += c;
    }
  }
}

std::string TableFile::json_cells(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(text.data(), text.size()).get(object) != simdjson::SUCCESS) return "not a JSON object";
  cells_.clear();
  for (size_t n = 0; n < options_.columns.size(); ++n) {
    simdjson::dom::element value;
    if (object.at_key(options_.columns[n]).get(value) != simdjson::SUCCESS || value.is_null())
      return fmt::format("no key {}", printable(options_.columns[n]));
    cells_.push_back(text_of(value));
    numbers_[n] = static_cast<int64_t>(n) + 1;
  }
  return "";
}

std::string TableFile::take_columns() {
  fields_.clear();
  for (size_t n = 0; n < numbers_.size(); ++n) {
    if (numbers_[n] > static_cast<int64_t>(cells_.size()))
      return fmt::format("{} column{}; expected text in column {}", cells_.size(), cells_.size() == 1 ? "" : "s",
                         options_.columns[n]);
    const std::string& cell = cells_[static_cast<size_t>(numbers_[n] - 1)];
    if (utf8_error(cell)) return "not UTF-8; a file in another encoding is converted by iconv -f WINDOWS-1252 -t UTF-8";
    fields_.push_back(cell);
  }
  return "";
}

}  // namespace mh
