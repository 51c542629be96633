// Two layouts, one list.
#include "multihead/tasks/readers/labelled_files.h"

#include <algorithm>
#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/tasks/readers/labelled_folder.h"
#include "multihead/tasks/readers/table_file.h"

namespace mh {

namespace {

std::string without_margins(const std::string& text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

}  // namespace

std::string LabelledFiles::where(size_t row) const {
  return is_table ? fmt::format("{}:{}", name, rows[row].line) : rows[row].path;
}

LabelledFiles read_labelled_files(const std::string& path, const DataConfig& data,
                                  const std::vector<std::string>& endings) {
  LabelledFiles out{.name = path};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    for (LabelledPath& each : read_labelled_folder(path, endings))
      out.rows.push_back({std::move(each.path), std::move(each.label), static_cast<int64_t>(out.rows.size()) + 1});
    return out;
  }
  out.is_table = true;
  TableFile table(path, {.columns = {data.text, data.label},
                         .format = data.format,
                         .header = data.header,
                         .max_broken = data.max_broken});
  while (table.next()) {
    const std::string file = without_margins(table.fields()[0]), label = without_margins(table.fields()[1]);
    if (file.empty())
      table.broken().skip(table.line(), "no file");
    else if (label.empty())
      table.broken().skip(table.line(), "no label");
    else
      out.rows.push_back({(std::filesystem::path(path).parent_path() / file).string(), label, table.line()});
  }
  out.report = table.broken().sentences(table.rows());
  check(!out.rows.empty(), "{}: no file with a label is there; expected rows of a file and its label{}{}",
        printable_path(path), out.report.empty() ? "" : "; ", fmt::join(out.report, "; "));
  return out;
}

}  // namespace mh
