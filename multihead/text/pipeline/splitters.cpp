// The reading of pre-tokenisers, and the cuts they make.
#include "multihead/text/pipeline/splitters.h"

#include "multihead/base/error.h"
#include "multihead/text/pipeline/cut.h"
#include "multihead/text/pipeline/metaspace.h"
#include "multihead/text/pipeline/read_parts.h"

namespace mh::detail {
namespace {

constexpr std::string_view kSplitters =
    "BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Digits, Metaspace, Split, CharDelimiterSplit or "
    "Sequence";

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
  return [is, behaviour](Pieces& pieces) {
    cut_pieces(pieces, behaviour, [&](std::string_view text) { return match_characters(text, is); });
  };
}

// Runs of word characters and runs of what is neither that nor white space; white space goes.
Stretches words_and_signs(std::string_view text) {
  static const CodeSet word(kWordOfPattern);
  enum class Kind { none, space, word, sign } before = Kind::none;
  Stretches out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t c = next_character(text, at);
    const Kind kind = is_white_space(c) ? Kind::space : word.contains(c) ? Kind::word : Kind::sign;
    if (kind == before) {
      out.back().end = at;
    } else {
      out.push_back({begin, at, kind == Kind::space});
    }
    before = kind;
  }
  return out;
}

SplitStep read_split(const JsonElement& element, const std::string& where) {
  const JsonFields fields(element, where, {"type", "pattern", "behavior", "invert"});
  const bool invert = fields.flag("invert", false);
  check(fields.find("behavior").has_value(), "{}: 'behavior' is missing", where);
  return [what = read_literal(fields), behaviour = read_behaviour(fields, ""), invert](Pieces& pieces) {
    cut_pieces(pieces, behaviour, [&](std::string_view text) {
      Stretches out = match_literal(text, what);
      for (Stretch& stretch : out) stretch.match ^= invert;
      return out;
    });
  };
}

SplitStep read_digits(const JsonElement& element, const std::string& where) {
  const bool alone = JsonFields(element, where, {"type", "individual_digits"}).flag("individual_digits", false);
  return at_characters(is_numeric, alone ? Behaviour::isolated : Behaviour::contiguous);
}

SplitStep read_delimiter(const JsonElement& element, const std::string& where) {
  const std::string delimiter = read_character(JsonFields(element, where, {"type", "delimiter"}), "delimiter");
  return [delimiter](Pieces& pieces) {
    cut_pieces(pieces, Behaviour::removed, [&](std::string_view text) { return match_literal(text, delimiter); });
  };
}

}  // namespace

void read_splitters(const JsonElement& element, const std::string& where, std::vector<SplitStep>& out) {
  const std::string_view type = json_type(element, where);
  if (type == "Sequence") {
    for (const JsonElement step : JsonFields(element, where, {"type", "pretokenizers"}).array("pretokenizers"))
      read_splitters(step, where, out);
  } else if (type == "BertPreTokenizer") {
    JsonFields(element, where, {"type"});
    out.push_back(at_characters(is_white_space, Behaviour::removed));
    out.push_back(at_characters(is_punctuation, Behaviour::isolated));
  } else if (type == "Whitespace") {
    JsonFields(element, where, {"type"});
    out.push_back([](Pieces& pieces) { cut_pieces(pieces, Behaviour::removed, words_and_signs); });
  } else if (type == "WhitespaceSplit") {
    JsonFields(element, where, {"type"});
    out.push_back(at_characters(is_white_space, Behaviour::removed));
  } else if (type == "Punctuation") {
    const JsonFields fields(element, where, {"type", "behavior"});
    out.push_back(at_characters(is_punctuation, read_behaviour(fields, "Isolated")));
  } else if (type == "Digits") {
    out.push_back(read_digits(element, where));
  } else if (type == "Metaspace") {
    out.push_back(MetaspaceSplit{read_metaspace(element, where)});
  } else if (type == "Split") {
    out.push_back(read_split(element, where));
  } else if (type == "CharDelimiterSplit") {
    out.push_back(read_delimiter(element, where));
  } else {
    refuse_part(where, type, kSplitters);
  }
}

}  // namespace mh::detail
