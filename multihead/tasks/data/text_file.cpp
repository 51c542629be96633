// Text as every verb reads it.
#include "multihead/tasks/data/text_file.h"

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/unpack.h"
#include "multihead/text/text_lines.h"

namespace mh {

namespace {

constexpr size_t kLookedAt = 4096;  // bytes: enough to tell a picture or a program from text

}  // namespace

TextFile read_text(const std::string& path) {
  const detail::FileBytes file = detail::read_unpacked(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  const std::string_view after = text_after_mark(text, path);
  if (after.substr(0, kLookedAt).find('\0') != std::string_view::npos)
    fail(ErrorKind::io, "cannot read {}: it holds NUL bytes; expected text", printable_path(path));
  return {file.keeper, after};
}

std::string_view stream_text(std::string_view start, const std::string& name) {
  const std::string_view packing = detail::packing_of(std::as_bytes(std::span(start)));
  if (!packing.empty())
    fail(ErrorKind::unsupported, "{}: compressed with {}; expected text, as from zcat or xzcat", name, packing);
  return text_after_mark(start, name);
}

}  // namespace mh
