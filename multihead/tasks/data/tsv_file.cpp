// Lines and their columns.
#include "multihead/tasks/data/tsv_file.h"

#include "multihead/base/error.h"
#include "multihead/tasks/data/text_file.h"

namespace mh {

TsvFile::TsvFile(const std::string& path) : path_(path) {
  const TextFile file = read_text(path);
  keeper_ = file.keeper;
  rest_ = file.text;
}

bool TsvFile::next() {
  if (rest_.empty()) return false;
  line_ = next_line(rest_);
  ++number_;
  return true;
}

bool TsvFile::split(std::span<const int64_t> columns) {
  all_.clear();
  for (std::string_view rest = line_;;) {
    const size_t tab = rest.find('\t');
    all_.push_back(rest.substr(0, tab));
    if (tab == std::string_view::npos) break;
    rest.remove_prefix(tab + 1);
  }
  fields_.clear();
  if (columns.empty()) fields_ = all_;
  for (const int64_t column : columns) {
    check(column <= static_cast<int64_t>(all_.size()), "{}:{}: the line has {} column{}; expected text in column {}",
          path_, number_, all_.size(), all_.size() == 1 ? "" : "s", column);
    fields_.push_back(all_[static_cast<size_t>(column - 1)]);
  }
  for (const std::string_view field : fields_)
    if (broken_.skips(field, number_, static_cast<size_t>(field.data() - line_.data()))) return false;
  return true;
}

}  // namespace mh
