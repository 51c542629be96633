// Lines to sources and references.
#include "cli/reference_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/text/utf8.h"

namespace mh::cli {

namespace {

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns;
  size_t begin = 0;
  for (size_t tab = line.find('\t'); tab != std::string::npos; tab = line.find('\t', begin)) {
    columns.push_back(line.substr(begin, tab - begin));
    begin = tab + 1;
  }
  columns.push_back(line.substr(begin));
  return columns;
}

}  // namespace

ReferenceFile read_references(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorKind::io, "{}: cannot be opened: {}", path, std::strerror(errno));
  ReferenceFile out;
  std::unordered_map<std::string, size_t> places;
  int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (const auto at = utf8_error(line))
      fail(ErrorKind::io, "{}, line {}: byte {} is not UTF-8", path, number, *at + 1);
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
  if (in.bad()) fail(ErrorKind::io, "{}: cannot be read: {}", path, std::strerror(errno));
  if (out.sources.empty()) fail(ErrorKind::io, "{}: holds no sentences", path);
  return out;
}

}  // namespace mh::cli
