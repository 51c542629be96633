// Lines to sources and references.
#include "cli/reference_file.h"

#include <string_view>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/text/text_lines.h"
#include "multihead/tasks/text_file.h"

namespace mh::cli {

namespace {

std::vector<std::string> columns_of(std::string_view line) {
  std::vector<std::string> columns;
  for (size_t tab = line.find('\t'); tab != std::string_view::npos; tab = line.find('\t')) {
    columns.emplace_back(line.substr(0, tab));
    line.remove_prefix(tab + 1);
  }
  columns.emplace_back(line);
  return columns;
}

}  // namespace

ReferenceFile read_references(const std::string& path) {
  const TextFile file = read_text(path);
  ReferenceFile out;
  std::unordered_map<std::string, size_t> places;
  BrokenLines broken;
  int64_t number = 0;
  for (std::string_view text = file.text; !text.empty();) {
    ++number;
    const std::string_view line = next_line(text);
    if (line.empty() || broken.skips(line, number)) continue;
    std::vector<std::string> columns = columns_of(line);
    const auto [place, fresh] = places.try_emplace(columns.front(), out.sources.size());
    if (fresh) {
      out.sources.push_back(columns.front());
      out.references.emplace_back();
    }
    size_t added = 0;
    for (size_t n = 1; n < columns.size(); ++n) {
      if (columns[n].empty()) continue;
      out.references[place->second].push_back(std::move(columns[n]));
      ++added;
    }
    if (columns.front().empty() || added == 0)
      fail(ErrorKind::io, "{}, line {}: has no {}; expected source, tab, reference", path, number,
           columns.front().empty() ? "source" : "reference");
  }
  out.skipped = broken.sentence(path, number);
  if (out.sources.empty())
    fail(ErrorKind::io, "{}: holds no sentences{}", path, out.skipped.empty() ? "" : "; " + out.skipped);
  return out;
}

}  // namespace mh::cli
