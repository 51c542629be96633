// Sentences with their translations by people, from a file of tab-separated lines.
#pragma once

#include <string>
#include <vector>

namespace mh::cli {

struct ReferenceFile {
  std::vector<std::string> sources{};                  // each once, in order of appearance
  std::vector<std::vector<std::string>> references{};  // of each source: all that stand behind it, on any line
  std::string skipped{};                               // a sentence about lines that are not UTF-8, where there are any
};

// Lines are source, tab, reference, and further references behind further tabs; empty lines are skipped, and by the
// rule of text_lines.h those that are not UTF-8. gzip and xz are unpacked. Throws: io, naming file and line, where it
// cannot be read, has a line without a source or a reference, or no sentence at all; unsupported for other
// compressions.
ReferenceFile read_references(const std::string& path);

}  // namespace mh::cli
