// Metaspace: spaces written as a visible character, by which words are told apart.
#pragma once

#include <string>
#include <vector>

#include "multihead/text/pipeline/document.h"
#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {

struct Metaspace {
  enum class Prepend { always, first, never };

  std::string sign = "\xe2\x96\x81";  // U+2581
  Prepend prepend = Prepend::always;
  bool split = true;
};

// The splitter: only U+0020 is replaced; the sign is put before a piece that does not begin with it, and each sign
// begins a part.
struct MetaspaceSplit {
  Metaspace metaspace;
  void operator()(Document& document) const;
};

// The decoder: signs become spaces; those of the first token vanish unless none is ever prepended.
struct MetaspaceDecode {
  Metaspace metaspace;
  void operator()(std::vector<std::string>& tokens) const;
};

// Throws: invalid_argument, unsupported, beginning with `where`.
Metaspace read_metaspace(const JsonElement& element, const std::string& where);

}  // namespace mh::detail
