// Lines to sources and references.
#include "cli/reference_file.h"

#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/tasks/data/tsv_file.h"

namespace mh::cli {

ReferenceFile read_references(const std::string& path) {
  TsvFile file(path);
  ReferenceFile out;
  std::unordered_map<std::string, size_t> places;
  while (file.next()) {
    if (file.line().empty() || !file.split()) continue;
    std::vector<std::string> columns(file.fields().begin(), file.fields().end());
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
      fail(ErrorKind::io, "{}, line {}: has no {}; expected source, tab, reference", path, file.number(),
           columns.front().empty() ? "source" : "reference");
  }
  out.skipped = file.broken().sentence(path, file.number());
  if (out.sources.empty())
    fail(ErrorKind::io, "{}: holds no sentences{}", path, out.skipped.empty() ? "" : "; " + out.skipped);
  return out;
}

}  // namespace mh::cli
