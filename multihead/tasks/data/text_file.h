// Text as every verb reads it: a whole file, or the beginning of a stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace mh {

// The text lives as long as a copy of `keeper` does.
struct TextFile {
  std::shared_ptr<void> keeper;
  std::string_view text;
};

// The file's text: gzip and xz unpacked, told by their content, and behind a byte order mark. Lines are taken off it by
// next_line. Throws: io where it cannot be read, is not text or its compressed data are damaged; unsupported for other
// compressions, UTF-16 and UTF-32.
TextFile read_text(const std::string& path);

// Of a stream whose first bytes (16 or more, or all there are) these are: what follows a byte order mark. Throws:
// unsupported where it is compressed, UTF-16 or UTF-32; `name` stands in the sentence.
std::string_view stream_text(std::string_view start, const std::string& name);

}  // namespace mh
