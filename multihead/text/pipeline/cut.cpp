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

void match_literal(std::string_view text, std::string_view what, Stretches& out) {
  size_t from = 0;
  const auto add = [&](size_t begin, size_t end, bool match) {
    out.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), match});
  };
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, from)) {
    if (from < at) add(from, at, false);
    from = at + what.size();
    add(at, from, true);
  }
  if (from < text.size()) add(from, text.size(), false);
}

void behave(Stretches& stretches, Behaviour behaviour) {
  switch (behaviour) {
    case Behaviour::isolated: return;
    case Behaviour::removed: std::erase_if(stretches, [](const Stretch& stretch) { return stretch.match; }); return;
    case Behaviour::merged_with_previous: stretches = merge_backwards(stretches); return;
    case Behaviour::merged_with_next: stretches = merge_forwards(stretches); return;
    case Behaviour::contiguous: stretches = merge_equals(stretches); return;
  }
}

}  // namespace mh::detail
