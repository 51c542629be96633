// The reading of the map, and the walk of a text through it.
#include "multihead/text/pipeline/precompiled.h"

#include <array>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/unicode/graphemes.h"
#include "multihead/text/unicode/utf8.h"

namespace mh::detail {
namespace {

constexpr size_t kLongestCluster = 6;  // in bytes, and that is too long

class CharacterMap {
 public:
  CharacterMap(std::string map, const std::string& where) : map_(std::move(map)), where_(where) {
    if (map_.empty()) return;
    check(map_.size() >= 4, "{}: the map has {} bytes; expected 4 or more", where, map_.size());
    const uint32_t size = word(0);
    check(size % 4 == 0 && size <= map_.size() - 4, "{}: the map's trie has {} bytes; expected whole words within {}",
          where, size, map_.size() - 4);
    units_ = size / 4;
    check(!utf8_error(replacements()), "{}: the map's replacements are not UTF-8", where);
    for (size_t c = 0; c < stays_.size(); ++c) {
      const char text = static_cast<char>(c);
      stays_[c] = !find({&text, 1});
    }
  }

  // Whether an ASCII character that nothing joins stays as it is.
  bool stays(char c) const { return static_cast<uint8_t>(c) < stays_.size() && stays_[static_cast<uint8_t>(c)]; }

  // What the shortest beginning of `text` in the map becomes.
  std::optional<std::string_view> find(std::string_view text) const {
    if (units_ == 0) return std::nullopt;
    size_t node = offset(unit(0));
    for (const char c : text) {
      if (c == 0) return std::nullopt;
      node ^= static_cast<uint8_t>(c);
      if (node >= units_) return std::nullopt;
      const uint32_t here = unit(node);
      if ((here & 0x800000ffu) != static_cast<uint8_t>(c)) return std::nullopt;
      node ^= offset(here);
      if (here >> 8 & 1) return replacement(node);
    }
    return std::nullopt;
  }

 private:
  uint32_t word(size_t at) const {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<uint8_t>(map_[at + i])} << 8 * i;
    return value;
  }
  uint32_t unit(size_t node) const { return word(4 + 4 * node); }
  static size_t offset(uint32_t unit) { return size_t{unit >> 10} << ((unit & 0x200) >> 6); }
  std::string_view replacements() const { return std::string_view(map_).substr(4 + 4 * units_); }

  std::string_view replacement(size_t node) const {
    const size_t at = node < units_ ? unit(node) & 0x7fffffffu : ~size_t{0};
    const std::string_view all = replacements();
    check(at <= all.size() && (at == all.size() || !U8_IS_TRAIL(all[at])), "{}: the map's trie leads to no replacement",
          where_);
    return all.substr(at, all.find('\0', at) - at);
  }

  std::string map_, where_;
  size_t units_ = 0;
  std::array<bool, 128> stays_{};
};

size_t characters_of(std::string_view text) {
  size_t out = 0;
  for (const char c : text) out += U8_IS_TRAIL(c) ? 0 : 1;
  return out;
}

// Appends `with` for `what`. More characters than before are new ones at the end; of fewer the last stands for the
// rest, be it the one before.
void put_replacement(std::string_view what, std::string_view with, std::vector<Changed>& out) {
  const size_t before = characters_of(what), now = characters_of(with), first = out.size();
  for (size_t at = 0; at < with.size();) out.push_back({next_character(with, at), 0});
  for (size_t i = now; i > before; --i) out[first + i - 1].change = 1;
  if (now < before && !out.empty()) out.back().change -= static_cast<int32_t>(before - now);
}

// The characters of a text from the first one on that the map changes; before it they are taken over when it comes.
class MappedText {
 public:
  MappedText(const CharacterMap& map, std::string_view text) : map_(map), text_(text) {}

  // Takes what the map makes of `text_` from `begin` to `end`; false where it is not in the map.
  bool map(size_t begin, size_t end) {
    const std::string_view part = text_.substr(begin, end - begin);
    const auto with = map_.find(part);
    if (!with) return false;
    if (!changed_) {
      out_.reserve(text_.size());
      for (size_t at = 0; at < begin;) out_.push_back({next_character(text_, at), 0});
      changed_ = true;
    }
    put_replacement(part, *with, out_);
    return true;
  }
  void keep(uint32_t c) {
    if (changed_) out_.push_back({c, 0});
  }

  bool changed() const { return changed_; }
  const std::vector<Changed>& characters() const { return out_; }

 private:
  const CharacterMap& map_;
  std::string_view text_;
  std::vector<Changed> out_;
  bool changed_ = false;
};

void normalise_by(const CharacterMap& map, Aligned& piece) {
  const std::string_view text = piece.text;
  MappedText out(map, text);
  for (size_t at = 0; at < text.size();) {
    const bool alone = at + 1 == text.size() || static_cast<uint8_t>(text[at + 1]) < 0x80;
    if (alone && map.stays(text[at]) && text[at] != '\r') {
      out.keep(static_cast<uint8_t>(text[at]));
      ++at;
      continue;
    }
    const size_t end = grapheme_end(text, at);
    const bool whole = end - at < kLongestCluster && out.map(at, end);
    for (size_t from = at; !whole && from < end;) {
      size_t to = from;
      const uint32_t c = next_character(text, to);
      if (!out.map(from, to)) out.keep(c);
      from = to;
    }
    at = end;
  }
  if (out.changed()) set_characters(piece, out.characters());
}

}  // namespace

NormaliseStep precompiled_normaliser(std::string map, const std::string& where) {
  return
      [map = std::make_shared<const CharacterMap>(std::move(map), where)](Aligned& text) { normalise_by(*map, text); };
}

std::string from_base64(std::string_view text, const std::string& where) {
  std::string out;
  uint32_t bits = 0, count = 0;
  const size_t end = text.find('=') == std::string_view::npos ? text.size() : text.find('=');
  check(text.size() % 4 == 0 && text.size() - end <= 2 && text.find_first_not_of('=', end) == std::string_view::npos,
        "{}: this is not valid base64", where);
  for (const char c : text.substr(0, end)) {
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    check(value >= 0, "{}: this is not valid base64", where);
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return out;
}

}  // namespace mh::detail
