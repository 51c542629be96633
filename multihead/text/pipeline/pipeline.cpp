// The way of a text through the steps of a tokenizer.json.
#include "multihead/text/pipeline/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/models/word_cache.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/unicode/utf8.h"
#include "multihead/text/word_table.h"

namespace mh::detail {
namespace {

// The text with U+FFFD for what is not well-formed, which keeps its place.
Aligned repaired(std::string_view text) {
  Aligned out;
  for (size_t at = 0; at < text.size();) {
    const auto begin = static_cast<uint32_t>(at);
    append_character(next_character(text, at), out.text);
    out.origins.resize(out.text.size(), {begin, static_cast<uint32_t>(at)});
  }
  return out;
}

Aligned part_of(const Document& document, const Piece& piece) {
  Aligned out{.text = std::string(document.of(piece)), .begin = piece.begin};
  if (document.origins.empty()) return out;
  out.origins.assign(document.origins.begin() + piece.begin, document.origins.begin() + piece.end);
  out.begin = out.origins.front().begin;
  return out;
}

}  // namespace

void Pipeline::cut(std::string_view text, bool find_special, Document& out) const {
  check(text.size() < size_t{1} << 31, "encode: a text of {} bytes is too long; expected less than 2 GiB", text.size());
  out.text = text;
  if (utf8_error(text)) {
    Aligned whole = repaired(text);
    out.buffer = std::move(whole.text);
    out.origins = std::move(whole.origins);
    out.text = out.buffer;
  }
  Pieces pieces;
  raw.cut(out.text, 0, find_special, pieces);
  if (normalise.empty() && normalised.empty()) {
    out.pieces = std::move(pieces);
    return;
  }
  bool changed = false;
  uint32_t end = 0;
  std::vector<Aligned> parts;
  for (const Piece& piece : pieces) {
    changed = changed || piece.begin != end;  // white space that two added tokens take is there twice
    end = piece.end;
    parts.push_back(part_of(out, piece));
    if (piece.token >= 0) continue;
    for (const NormaliseStep& step : normalise) step(parts.back());
    changed = changed || !parts.back().in_place() || parts.back().text != out.of(piece);
  }
  std::string whole;
  std::vector<Origin> origins;
  for (size_t i = 0; i < pieces.size(); ++i) {
    Aligned& part = parts[i];
    const auto begin = static_cast<uint32_t>(whole.size());
    if (pieces[i].token >= 0) {
      out.pieces.push_back({begin, begin + static_cast<uint32_t>(part.text.size()), pieces[i].token});
    } else {
      normalised.cut(part.text, begin, find_special, out.pieces);
    }
    whole += part.text;
    if (!changed) continue;
    store_origins(part);
    origins.insert(origins.end(), part.origins.begin(), part.origins.end());
  }
  if (!changed) return;
  check(whole.size() < size_t{1} << 31, "encode: the normalised text is too long; expected less than 2 GiB");
  out.buffer = std::move(whole);
  out.text = out.buffer;
  out.origins = std::move(origins);
}

template <class Each>
void Pipeline::each_token(const Document& document, Each&& each) const {
  WordCache& cache = WordCache::of(number);
  WordTokens found;
  for (size_t i = 0; i < document.pieces.size(); ++i) {
    const Piece& piece = document.pieces[i];
    if (piece.token >= 0) {
      each(i, WordToken{piece.token, piece.begin, piece.end});
      continue;
    }
    const std::string_view word = document.of(piece);
    found.clear();
    if (word.size() > WordCache::kLongest) {
      model->encode(word, found);
    } else if (const uint64_t hash = WordTable::hash_of(word); !cache.find(word, hash, found)) {
      model->encode(word, found);
      cache.keep(word, hash, found.data(), found.size());
    }
    // Tokens of spelled-out prefixes may claim more bytes than the word has.
    for (const WordToken& token : found)
      each(i, WordToken{token.id, std::min(piece.begin + token.begin, piece.end - 1),
                        std::min(piece.begin + token.end, piece.end)});
  }
}

Sequence Pipeline::encode(std::string_view text, bool find_special) const {
  Document document;
  cut(text, find_special, document);
  for (const SplitStep& step : split) step(document);
  Sequence out;
  out.ids.reserve(document.pieces.size() + document.pieces.size() / 4);
  out.offsets.reserve(out.ids.capacity());
  out.words.reserve(out.ids.capacity());
  each_token(document, [&](size_t word, const WordToken& token) {
    out.ids.push_back(token.id);
    const uint32_t first = document.origin(token.begin).begin;
    out.offsets.push_back({first, token.end > token.begin ? document.origin(token.end - 1).end : first});
    out.words.push_back(static_cast<int32_t>(word));
    out.added.push_back(document.pieces[word].token >= 0);
  });
  return out;
}

void Pipeline::encode(std::string_view text, bool find_special, std::vector<int32_t>& out) const {
  Document document;
  cut(text, find_special, document);
  for (const SplitStep& step : split) step(document);
  each_token(document, [&](size_t, const WordToken& token) { out.push_back(token.id); });
}

std::string Pipeline::decode(const int32_t* ids, size_t count) const {
  std::vector<std::string> found;
  for (size_t i = 0; i < count; ++i)
    if (!special[static_cast<size_t>(ids[i])]) found.push_back(tokens[static_cast<size_t>(ids[i])]);
  for (const DecodeStep& step : decoders) step(found);
  return fmt::format("{}", fmt::join(found, decodes ? "" : " "));
}

}  // namespace mh::detail
