// Sentences with their translations by people, from a file of tab-separated lines.
#pragma once

#include <string>
#include <vector>

namespace mh::cli {

struct ReferenceFile {
  std::vector<std::string> sources{};                  // each once, in order of appearance
  std::vector<std::vector<std::string>> references{};  // of each source: all that stand behind it, on any line
};

// Lines are source, tab, reference, and further references behind further tabs; empty lines are skipped.
// Throws: io, naming file and line, where it cannot be read, is not UTF-8, has a line without a source or a reference,
// or no line at all.
ReferenceFile read_references(const std::string& path);

}  // namespace mh::cli
