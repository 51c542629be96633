// The reading of pre-tokenisers, and the cuts they make.
#include "multihead/text/pipeline/splitters.h"

#include <array>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/byte_level.h"
#include "multihead/text/pipeline/cut.h"
#include "multihead/text/pipeline/metaspace.h"
#include "multihead/text/pipeline/read/read_parts.h"
#include "multihead/text/pipeline/searched.h"

namespace mh::detail {
namespace {

constexpr std::string_view kSplitters =
    "BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Digits, Metaspace, ByteLevel, Split, "
    "CharDelimiterSplit "
    "or Sequence";

bool is_punctuation(uint32_t c) {
  static const CodeSet set(kPunctuation);
  return set.contains(c);
}

bool is_numeric(uint32_t c) {
  static const CodeSet set(kNumeric);
  return set.contains(c);
}

Behaviour read_behaviour(const JsonFields& fields, std::string_view missing) {
  const std::string_view name = fields.find("behavior") ? fields.string("behavior") : missing;
  if (name == "Removed") return Behaviour::removed;
  if (name == "Isolated") return Behaviour::isolated;
  if (name == "MergedWithPrevious") return Behaviour::merged_with_previous;
  if (name == "MergedWithNext") return Behaviour::merged_with_next;
  if (name == "Contiguous") return Behaviour::contiguous;
  refuse_part(fields.where() + ": behavior", name,
              "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

template <class Is>
SplitStep at_characters(Is is, Behaviour behaviour) {
  return [is, behaviour](Document& document) {
    cut_pieces(document, behaviour, [&](std::string_view text, Stretches& out) { match_characters(text, is, out); });
  };
}

// Runs of word characters and runs of what is neither that nor white space; white space goes.
void words_and_signs(std::string_view text, Stretches& out) {
  static const CodeSet word(kWordOfPattern);
  enum class Kind { none, space, word, sign } before = Kind::none;
  for (size_t at = 0; at < text.size();) {
    const auto begin = static_cast<uint32_t>(at);
    const uint32_t c = next_character(text, at);
    const Kind kind = is_white_space(c) ? Kind::space : word.contains(c) ? Kind::word : Kind::sign;
    if (kind == before) {
      out.back().end = static_cast<uint32_t>(at);
    } else {
      out.push_back({begin, static_cast<uint32_t>(at), kind == Kind::space});
    }
    before = kind;
  }
}

// BertPreTokenizer: white space goes, each punctuation character stands alone.
void words_and_punctuation(Document& document) {
  enum class Kind : uint8_t { word, space, sign };
  static const std::array<Kind, 128> ascii = [] {
    std::array<Kind, 128> kinds{};
    for (uint32_t c = 0; c < 128; ++c)
      kinds[c] = is_white_space(c) ? Kind::space : is_punctuation(c) ? Kind::sign : Kind::word;
    return kinds;
  }();
  Pieces out;
  out.reserve(document.text.size() / 4);
  for (const Piece& piece : document.pieces) {
    if (piece.token >= 0) {
      out.push_back(piece);
      continue;
    }
    uint32_t word = piece.begin;  // where the word began that goes on
    for (size_t at = piece.begin; at < piece.end;) {
      const auto begin = static_cast<uint32_t>(at);
      const uint32_t c = next_character(document.text, at);
      const Kind kind = c < 128             ? ascii[c]
                        : is_white_space(c) ? Kind::space
                        : is_punctuation(c) ? Kind::sign
                                            : Kind::word;
      if (kind == Kind::word) continue;
      if (word < begin) out.push_back({word, begin});
      word = static_cast<uint32_t>(at);
      if (kind == Kind::sign) out.push_back({begin, word});
    }
    if (word < piece.end) out.push_back({word, piece.end});
  }
  document.pieces = std::move(out);
}

SplitStep read_split(const JsonElement& element, const std::string& where) {
  const JsonFields fields(element, where, {"type", "pattern", "behavior", "invert"});
  const bool invert = fields.flag("invert", false);
  check(fields.find("behavior").has_value(), "{}: 'behavior' is missing", where);
  return [what = Searched(fields), behaviour = read_behaviour(fields, ""), invert](Document& document) {
    cut_pieces(document, behaviour, [&](std::string_view text, Stretches& out) {
      uint32_t from = 0;
      what.each_match(text, [&](size_t begin, size_t end) {
        const auto first = static_cast<uint32_t>(begin), last = static_cast<uint32_t>(end);
        if (from < first) out.push_back({from, first, invert});
        out.push_back({first, last, !invert});
        from = last;
      });
      if (from < text.size()) out.push_back({from, static_cast<uint32_t>(text.size()), invert});
    });
  };
}

SplitStep read_digits(const JsonElement& element, const std::string& where) {
  const bool alone = JsonFields(element, where, {"type", "individual_digits"}).flag("individual_digits", false);
  return at_characters(is_numeric, alone ? Behaviour::isolated : Behaviour::contiguous);
}

SplitStep read_delimiter(const JsonElement& element, const std::string& where) {
  const std::string delimiter = read_character(JsonFields(element, where, {"type", "delimiter"}), "delimiter");
  return [delimiter](Document& document) {
    cut_pieces(document, Behaviour::removed,
               [&](std::string_view text, Stretches& out) { match_literal(text, delimiter, out); });
  };
}

SplitStep read_plain_splitter(const JsonElement& element, std::string_view type, const std::string& where) {
  JsonFields(element, where, {"type"});
  if (type == "BertPreTokenizer") return words_and_punctuation;
  if (type == "WhitespaceSplit") return at_characters(is_white_space, Behaviour::removed);
  return [](Document& document) { cut_pieces(document, Behaviour::removed, words_and_signs); };
}

SplitStep read_splitter(const JsonElement& element, std::string_view type, const std::string& where) {
  if (type == "BertPreTokenizer" || type == "Whitespace" || type == "WhitespaceSplit")
    return read_plain_splitter(element, type, where);
  if (type == "Punctuation") {
    const JsonFields fields(element, where, {"type", "behavior"});
    return at_characters(is_punctuation, read_behaviour(fields, "Isolated"));
  }
  if (type == "Digits") return read_digits(element, where);
  if (type == "Metaspace") return MetaspaceSplit{read_metaspace(element, where)};
  if (type == "Split") return read_split(element, where);
  if (type == "CharDelimiterSplit") return read_delimiter(element, where);
  if (type == "ByteLevel") return read_byte_level(element, where);
  refuse_part(where, type, kSplitters);
}

}  // namespace

void read_splitters(const JsonElement& element, const std::string& where, Splitters& out) {
  const std::string_view type = json_type(element, where);
  if (type == "Sequence") {
    for (const JsonElement step : JsonFields(element, where, {"type", "pretokenizers"}).array("pretokenizers"))
      read_splitters(step, where, out);
    return;
  }
  if (out.bytes_at_end) out.steps.push_back(spell_document);
  out.steps.push_back(read_splitter(element, type, where));
  out.bytes_at_end = type == "ByteLevel";
}

}  // namespace mh::detail
