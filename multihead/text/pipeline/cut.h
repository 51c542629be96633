// Cutting a piece of text at matches, and what becomes of the matches.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "multihead/text/pipeline/piece.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {

enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct Stretch {
  size_t begin, end;
  bool match;
};

// Without gaps from the beginning to the end of a text.
using Stretches = std::vector<Stretch>;

// Every character of which `is` holds is a match of its own; the runs between them are not.
template <class Is>
Stretches match_characters(std::string_view text, Is&& is) {
  Stretches out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool match = is(next_character(text, at));
    if (!match && !out.empty() && !out.back().match) {
      out.back().end = at;
    } else {
      out.push_back({begin, at, match});
    }
  }
  return out;
}

// Every occurrence of `what`, which is not empty, is a match.
Stretches match_literal(std::string_view text, std::string_view what);

// What `behaviour` leaves of the stretches, in order.
Stretches behave(const Stretches& stretches, Behaviour behaviour);

void append_parts(const Piece& piece, const Stretches& parts, Pieces& out);

// Cuts every piece that is no token into the parts that `matches(text)` and `behaviour` give; empty parts vanish.
template <class Matches>
void cut_pieces(Pieces& pieces, Behaviour behaviour, Matches&& matches) {
  Pieces out;
  for (Piece& piece : pieces) {
    if (piece.token >= 0) {
      out.push_back(std::move(piece));
    } else {
      append_parts(piece, behave(matches(piece.text), behaviour), out);
    }
  }
  pieces = std::move(out);
}

}  // namespace mh::detail
