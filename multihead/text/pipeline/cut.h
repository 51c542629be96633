// Cutting a piece of text at matches, and what becomes of the matches.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "multihead/text/pipeline/document.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {

enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct Stretch {
  uint32_t begin, end;
  bool match;
};

// Without gaps from the beginning to the end of a text.
using Stretches = std::vector<Stretch>;

// Every character of which `is` holds is a match of its own; the runs between them are not. Appends.
template <class Is>
void match_characters(std::string_view text, Is&& is, Stretches& out) {
  for (size_t at = 0; at < text.size();) {
    const auto begin = static_cast<uint32_t>(at);
    const bool match = is(next_character(text, at));
    if (!match && !out.empty() && !out.back().match) {
      out.back().end = static_cast<uint32_t>(at);
    } else {
      out.push_back({begin, static_cast<uint32_t>(at), match});
    }
  }
}

// Every occurrence of `what`, which is not empty, is a match. Appends.
void match_literal(std::string_view text, std::string_view what, Stretches& out);

// Leaves of the stretches what `behaviour` says, in order.
void behave(Stretches& stretches, Behaviour behaviour);

// Cuts every piece that is not a token into the parts that `matches(text, stretches)` and `behaviour` give.
template <class Matches>
void cut_pieces(Document& document, Behaviour behaviour, Matches&& matches) {
  Pieces out;
  out.reserve(document.pieces.size());
  Stretches stretches;
  for (const Piece& piece : document.pieces) {
    if (piece.token >= 0) {
      out.push_back(piece);
      continue;
    }
    stretches.clear();
    matches(document.of(piece), stretches);
    behave(stretches, behaviour);
    for (const Stretch& part : stretches)
      if (part.begin < part.end) out.push_back({piece.begin + part.begin, piece.begin + part.end});
  }
  document.pieces = std::move(out);
}

}  // namespace mh::detail
