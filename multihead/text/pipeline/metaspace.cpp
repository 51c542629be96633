// Metaspace, as a splitter and as a decoder.
#include "multihead/text/pipeline/metaspace.h"

#include "multihead/base/error.h"
#include "multihead/text/pipeline/cut.h"
#include "multihead/text/pipeline/read/read_parts.h"

namespace mh::detail {

void MetaspaceSplit::operator()(Document& document) const {
  const std::string_view text = document.text;
  DocumentWriter writer(document);
  for (const Piece& piece : document.pieces) {
    if (piece.token >= 0) {
      writer.copy(piece.begin, piece.end);
      writer.end_piece(piece.token);
      continue;
    }
    const std::string_view part = document.of(piece);
    const bool there = part.starts_with(' ') || part.starts_with(metaspace.sign);
    const bool wanted = metaspace.prepend == Metaspace::Prepend::always ||
                        (metaspace.prepend == Metaspace::Prepend::first && document.origin(piece.begin).begin == 0);
    if (wanted && !there) writer.write(metaspace.sign, document.origin(piece.begin));
    size_t from = piece.begin;  // what is not written yet
    for (size_t at = piece.begin; at < piece.end; ++at) {
      const bool space = text[at] == ' ';
      if (!space && !text.substr(at, piece.end - at).starts_with(metaspace.sign)) continue;
      writer.copy(from, at);
      if (metaspace.split) writer.end_piece();
      from = at;
      if (!space) continue;
      writer.write(metaspace.sign, document.origin(at));
      from = at + 1;
    }
    writer.copy(from, piece.end);
    writer.end_piece();
  }
  writer.finish(document);
}

void MetaspaceDecode::operator()(std::vector<std::string>& tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool vanish = i == 0 && metaspace.prepend != Metaspace::Prepend::never;
    tokens[i] = replace_all(tokens[i], metaspace.sign, vanish ? "" : " ");
  }
}

Metaspace read_metaspace(const JsonElement& element, const std::string& where) {
  const JsonFields fields(element, where,
                          {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  Metaspace out{.sign = read_character(fields, "replacement"), .split = fields.flag("split", true)};
  const std::string_view scheme = fields.find("prepend_scheme") ? fields.string("prepend_scheme") : "always";
  if (scheme == "first") {
    out.prepend = Metaspace::Prepend::first;
  } else if (scheme == "never") {
    out.prepend = Metaspace::Prepend::never;
  } else if (scheme != "always") {
    refuse_part(where + ": prepend_scheme", scheme, "always, first or never");
  }
  const bool prefix = fields.flag("add_prefix_space", true);
  check(prefix || out.prepend == Metaspace::Prepend::never,
        "{}: 'add_prefix_space' is false but 'prepend_scheme' is {}; expected never", where, scheme);
  return out;
}

}  // namespace mh::detail
