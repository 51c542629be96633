// The five behaviours of a cut.
#include "multihead/text/pipeline/cut.h"

#include <algorithm>

namespace mh::detail {
namespace {

// Each match joins the stretch before it, unless that is a match too.
Stretches merge_backwards(const Stretches& stretches) {
  Stretches out;
  bool before = false;
  for (const Stretch& stretch : stretches) {
    if (stretch.match && !before && !out.empty()) {
      out.back().end = stretch.end;
    } else {
      out.push_back(stretch);
    }
    before = stretch.match;
  }
  return out;
}

Stretches merge_forwards(const Stretches& stretches) {
  Stretches out;
  bool behind = false;
  for (auto at = stretches.rbegin(); at != stretches.rend(); ++at) {
    if (at->match && !behind && !out.empty()) {
      out.back().begin = at->begin;
    } else {
      out.push_back(*at);
    }
    behind = at->match;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Stretches merge_equals(const Stretches& stretches) {
  Stretches out;
  for (const Stretch& stretch : stretches) {
    if (!out.empty() && out.back().match == stretch.match) {
      out.back().end = stretch.end;
    } else {
      out.push_back(stretch);
    }
  }
  return out;
}

}  // namespace

Stretches match_literal(std::string_view text, std::string_view what) {
  Stretches out;
  size_t from = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, from)) {
    if (from < at) out.push_back({from, at, false});
    from = at + what.size();
    out.push_back({at, from, true});
  }
  if (from < text.size()) out.push_back({from, text.size(), false});
  return out;
}

Stretches behave(const Stretches& stretches, Behaviour behaviour) {
  if (behaviour == Behaviour::merged_with_previous) return merge_backwards(stretches);
  if (behaviour == Behaviour::merged_with_next) return merge_forwards(stretches);
  if (behaviour == Behaviour::contiguous) return merge_equals(stretches);
  Stretches out = stretches;
  if (behaviour == Behaviour::removed) std::erase_if(out, [](const Stretch& stretch) { return stretch.match; });
  return out;
}

void append_parts(const Piece& piece, const Stretches& parts, Pieces& out) {
  for (const Stretch& part : parts)
    if (part.begin < part.end)
      out.push_back({.text = piece.text.substr(part.begin, part.end - part.begin),
                     .at_start = piece.at_start && part.begin == 0 && !piece.cut});
}

}  // namespace mh::detail
