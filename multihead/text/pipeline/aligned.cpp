// Changes to a text that keep track of where its bytes came from.
#include "multihead/text/pipeline/aligned.h"

#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

size_t length_at(std::string_view text, size_t at) {
  size_t after = at;
  next_character(text, after);
  return after - at;
}

// Whether each new character takes exactly the place of an old one.
bool one_to_one(std::string_view text, const std::vector<Changed>& characters, size_t dropped) {
  if (dropped > 0) return false;
  size_t at = 0;
  for (const Changed& one : characters) {
    if (one.change != 0 || at >= text.size()) return false;
    const size_t length = length_at(text, at);
    if (length != static_cast<size_t>(U8_LENGTH(one.character))) return false;
    at += length;
  }
  return at == text.size();
}

}  // namespace

void store_origins(Aligned& text) {
  if (!text.in_place()) return;
  text.origins.reserve(text.text.size());
  for (size_t at = 0; at < text.text.size();) {
    const size_t length = length_at(text.text, at);
    const uint32_t first = text.begin + static_cast<uint32_t>(at);
    text.origins.insert(text.origins.end(), length, {first, first + static_cast<uint32_t>(length)});
    at += length;
  }
}

void set_characters(Aligned& text, const std::vector<Changed>& characters, size_t dropped) {
  std::string out;
  out.reserve(text.text.size());
  if (text.in_place() && one_to_one(text.text, characters, dropped)) {
    for (const Changed& one : characters) append_character(one.character, out);
    text.text = std::move(out);
    return;
  }
  store_origins(text);
  std::vector<Origin> origins;
  origins.reserve(text.origins.size());
  size_t at = 0;
  const auto skip = [&](int64_t count) {
    for (; count > 0 && at < text.text.size(); --count) at += length_at(text.text, at);
  };
  skip(static_cast<int64_t>(dropped));
  for (const Changed& one : characters) {
    const bool fresh = one.change > 0 || at >= text.text.size();
    const Origin origin = !fresh ? text.origins[at] : at > 0 ? text.origins[at - 1] : Origin{text.begin, text.begin};
    append_character(one.character, out);
    origins.resize(out.size(), origin);
    if (!fresh) skip(1 - int64_t{one.change});
  }
  text.text = std::move(out);
  text.origins = std::move(origins);
}

void replace_matches(Aligned& text, const std::vector<Match>& matches, std::string_view with) {
  if (matches.empty()) return;
  bool in_place = text.in_place();
  for (const Match& match : matches) in_place = in_place && match.end - match.begin == with.size() && with.size() == 1;
  if (in_place) {
    for (const Match& match : matches) text.text[match.begin] = with[0];
    return;
  }
  store_origins(text);
  std::string out;
  std::vector<Origin> origins;
  out.reserve(text.text.size());
  origins.reserve(text.text.size());
  size_t from = 0;
  const auto copy = [&](size_t to) {
    out.append(text.text, from, to - from);
    origins.insert(origins.end(), text.origins.begin() + static_cast<std::ptrdiff_t>(from),
                   text.origins.begin() + static_cast<std::ptrdiff_t>(to));
  };
  for (const Match& match : matches) {
    copy(match.begin);
    out += with;
    origins.resize(out.size(), match.end > 0 ? text.origins[match.end - 1] : Origin{text.begin, text.begin});
    from = match.end;
  }
  copy(text.text.size());
  text.text = std::move(out);
  text.origins = std::move(origins);
}

void prepend(Aligned& text, std::string_view what) {
  if (text.text.empty() || what.empty()) return;
  store_origins(text);
  text.origins.insert(text.origins.begin(), what.size(), text.origins.front());
  text.text.insert(0, what);
}

}  // namespace mh::detail
