// Metaspace, as a splitter and as a decoder.
#include "multihead/text/pipeline/metaspace.h"

#include "multihead/base/error.h"
#include "multihead/text/pipeline/cut.h"
#include "multihead/text/pipeline/read_parts.h"

namespace mh::detail {

void MetaspaceSplit::operator()(Pieces& pieces) const {
  for (Piece& piece : pieces) {
    if (piece.token >= 0) continue;
    piece.text = replace_all(piece.text, " ", metaspace.sign);
    const bool wanted = metaspace.prepend == Metaspace::Prepend::always ||
                        (metaspace.prepend == Metaspace::Prepend::first && piece.at_start);
    if (wanted && !piece.text.starts_with(metaspace.sign)) piece.text.insert(0, metaspace.sign);
  }
  if (!metaspace.split) return;
  cut_pieces(pieces, Behaviour::merged_with_next,
             [&](std::string_view text) { return match_literal(text, metaspace.sign); });
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
