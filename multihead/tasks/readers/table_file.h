// The one reader of tables for tasks: rows of TSV, CSV or JSON lines, and of each the columns that are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/tasks/readers/broken_rows.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

struct TableOptions {
  std::vector<std::string> columns{};  // numbers counted from 1; or names, of a header row or of JSON keys
  TableFormat format = TableFormat::by_name;
  bool header = false;  // the first row names the columns; it does wherever a column is asked for by name
  int64_t max_broken = 100;
};

// The format that a file's name tells, its .gz or .xz aside: .csv, .jsonl and .ndjson; all others are TSV.
TableFormat format_of_name(std::string_view path);

// Rows one after the other; gzip and xz are unpacked. A row counts as broken where a column is missing or not UTF-8, a
// quote of CSV is not closed, or a line is not a JSON object; blank lines are passed over. In CSV (RFC 4180) a field in
// quotes may hold commas, line ends and, doubled, quotes. A number or a truth value of JSON is taken as its text.
class TableFile {
 public:
  // Throws: as read_text; invalid_argument where a column is named that the header does not have, or a JSON file is
  // asked for a column by number.
  TableFile(const std::string& path, const TableOptions& options);

  // Goes to the next row that is not broken; false at the end. Throws: as BrokenRows::add.
  bool next();
  const std::vector<std::string>& fields() const { return fields_; }  // in the order of the columns
  int64_t line() const { return line_; }                              // where the row begins, from 1
  int64_t rows() const { return rows_; }                              // so far, those that are broken included
  BrokenRows& broken() { return broken_; }
  const BrokenRows& broken() const { return broken_; }
  const std::string& path() const { return path_; }

 private:
  // The next row's cells in cells_, or why there are none; false at the end.
  bool read_row(std::string& why);
  bool read_csv(std::string& why);
  std::string csv_cells(std::string_view& text, int64_t& lines);
  std::string json_cells(std::string_view text);
  void take_header();
  std::string take_columns();

  std::string path_;
  TableOptions options_;
  TableFormat format_;
  std::shared_ptr<void> keeper_;
  std::string_view rest_;
  BrokenRows broken_;
  std::vector<int64_t> numbers_;  // of the columns, from 1
  std::vector<std::string> cells_, fields_;
  int64_t line_ = 0, next_line_ = 1, rows_ = 0;
};

}  // namespace mh
