// The reading of normalisers, and the small ones themselves.
#include "multihead/text/pipeline/normalisers.h"

#include "multihead/base/error.h"
#include "multihead/text/pipeline/models/byte_alphabet.h"
#include "multihead/text/pipeline/precompiled.h"
#include "multihead/text/pipeline/read/read_parts.h"
#include "multihead/text/pipeline/searched.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/unicode/forms.h"

namespace mh::detail {
namespace {

// Keeps what `wanted` maps to a character; it answers with kDropped for what goes.
constexpr uint32_t kDropped = ~uint32_t{0};

template <class Wanted>
void map_characters(Aligned& text, Wanted&& wanted) {
  std::vector<Changed> out;
  out.reserve(text.text.size());
  size_t first_dropped = 0;
  for (size_t at = 0; at < text.text.size();) {
    const uint32_t c = wanted(next_character(text.text, at));
    if (c != kDropped) {
      out.push_back({c, 0});
    } else if (out.empty()) {
      ++first_dropped;
    } else {
      --out.back().change;
    }
  }
  set_characters(text, out, first_dropped);
}

void strip_accents(Aligned& text) {
  static const CodeSet accents(kAccents);
  map_characters(text, [](uint32_t c) { return accents.contains(c) ? kDropped : c; });
}

// The cleaning of Google's translation models.
void clean_for_translation(Aligned& text) {
  map_characters(text, [](uint32_t c) -> uint32_t {
    if (c == '\t' || c == '\n' || c == '\f' || c == '\r') return ' ';
    if ((c >= 0x1 && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f) return kDropped;
    const bool space = c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xfeff || c == 0xfffd;
    return space ? uint32_t{' '} : c;
  });
}

// Each byte as one of the 256 characters.
void spell_bytes_of(Aligned& text) {
  std::vector<Changed> out;
  out.reserve(text.text.size());
  for (const char byte : text.text) {
    size_t at = 0;
    out.push_back({next_character(byte_characters()[static_cast<uint8_t>(byte)], at), U8_IS_TRAIL(byte) ? 1 : 0});
  }
  set_characters(text, out);
}

struct StripSpace {
  bool left, right;

  void operator()(Aligned& piece) const {
    const std::string& text = piece.text;
    size_t begin = 0;
    for (size_t at = 0; left && at < text.size() && is_white_space(next_character(text, at));) begin = at;
    size_t end = begin;
    for (size_t at = begin; at < text.size();)
      if (!is_white_space(next_character(text, at)) || !right) end = at;
    if (begin == 0 && end == text.size()) return;
    store_origins(piece);
    piece.origins = {piece.origins.begin() + static_cast<std::ptrdiff_t>(begin),
                     piece.origins.begin() + static_cast<std::ptrdiff_t>(end)};
    piece.text = text.substr(begin, end - begin);
  }
};

struct ReplaceText {
  Searched what;
  std::string with;

  void operator()(Aligned& piece) const {
    std::vector<Match> matches;
    what.each_match(piece.text, [&](size_t begin, size_t end) { matches.push_back({begin, end}); });
    replace_matches(piece, matches, with);
  }
};

NormaliseStep read_bert(const JsonElement& element, const std::string& where) {
  const JsonFields fields(element, where, {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  const bool lowercase = fields.flag("lowercase", true);
  return bert_normaliser({.clean_text = fields.flag("clean_text", true),
                          .chinese = fields.flag("handle_chinese_chars", true),
                          .strip_accents = fields.flag("strip_accents", lowercase),
                          .lowercase = lowercase});
}

ReplaceText read_replace_text(const JsonElement& element, const std::string& where) {
  const JsonFields fields(element, where, {"type", "pattern", "content"});
  return {Searched(fields), std::string(fields.string("content"))};
}

NormaliseStep read_form(std::string_view type) {
  const Form form = type == "NFC" ? Form::nfc : type == "NFD" ? Form::nfd : type == "NFKC" ? Form::nfkc : Form::nfkd;
  return [form](Aligned& text) {
    if (!surely_in_form(text.text, form)) set_characters(text, to_form(text.text, form));
  };
}

NormaliseStep read_plain(const JsonElement& element, std::string_view type, const std::string& where) {
  JsonFields(element, where, {"type"});
  if (type == "Lowercase") return [](Aligned& text) { set_characters(text, to_lower(text.text)); };
  if (type == "StripAccents") return strip_accents;
  if (type == "Nmt") return clean_for_translation;
  return read_form(type);
}

}  // namespace

void read_normalisers(const JsonElement& element, const std::string& where, std::vector<NormaliseStep>& out) {
  const std::string_view type = json_type(element, where);
  if (type == "Sequence") {
    for (const JsonElement step : JsonFields(element, where, {"type", "normalizers"}).array("normalizers"))
      read_normalisers(step, where, out);
  } else if (type == "BertNormalizer") {
    out.push_back(read_bert(element, where));
  } else if (type == "Strip") {
    const JsonFields fields(element, where, {"type", "strip_left", "strip_right"});
    out.push_back(StripSpace{fields.flag("strip_left", true), fields.flag("strip_right", true)});
  } else if (type == "Replace") {
    out.push_back(read_replace_text(element, where));
  } else if (type == "Precompiled") {
    const std::string_view map =
        JsonFields(element, where, {"type", "precompiled_charsmap"}).string("precompiled_charsmap");
    out.push_back(precompiled_normaliser(from_base64(map, where), where));
  } else if (type == "ByteLevel") {
    JsonFields(element, where, {"type"});
    out.push_back(spell_bytes_of);
  } else if (type == "Prepend") {
    const std::string what(JsonFields(element, where, {"type", "prepend"}).string("prepend"));
    out.push_back([what](Aligned& text) { prepend(text, what); });
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD" || type == "Lowercase" ||
             type == "StripAccents" || type == "Nmt") {
    out.push_back(read_plain(element, type, where));
  } else {
    refuse_part(where, type,
                "BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Nmt, "
                "Precompiled, ByteLevel or Sequence");
  }
}

}  // namespace mh::detail
