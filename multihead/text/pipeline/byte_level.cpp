// The steps of ByteLevel.
#include "multihead/text/pipeline/byte_level.h"

#include <algorithm>

#include "multihead/text/pipeline/models/byte_alphabet.h"
#include "multihead/text/words.h"

namespace mh::detail {
namespace {

void add_spaces(Document& document) {
  const auto lacks_space = [&](const Piece& piece) { return piece.token < 0 && document.text[piece.begin] != ' '; };
  if (std::none_of(document.pieces.begin(), document.pieces.end(), lacks_space)) return;
  DocumentWriter writer(document);
  for (const Piece& piece : document.pieces) {
    if (lacks_space(piece)) writer.write(" ", document.origin(piece.begin));
    writer.copy(piece.begin, piece.end);
    writer.end_piece(piece.token);
  }
  writer.finish(document);
}

void cut_into_words(Document& document) {
  Pieces out;
  out.reserve(document.text.size() / 4);
  for (const Piece& piece : document.pieces) {
    if (piece.token >= 0) {
      out.push_back(piece);
      continue;
    }
    const std::string_view text = document.of(piece);
    for (size_t at = 0; at < text.size();) {
      const size_t end = word_end(text, at);
      out.push_back({piece.begin + static_cast<uint32_t>(at), piece.begin + static_cast<uint32_t>(end)});
      at = end;
    }
  }
  document.pieces = std::move(out);
}

}  // namespace

void ByteLevelSplit::operator()(Document& document) const {
  if (prefix_space) add_spaces(document);
  if (cut_words) cut_into_words(document);
}

ByteLevelSplit read_byte_level(const JsonElement& element, const std::string& where) {
  const JsonFields fields(element, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  return {fields.flag("add_prefix_space", true), fields.flag("use_regex", true)};
}

void spell_document(Document& document) {
  DocumentWriter writer(document);
  for (const Piece& piece : document.pieces) {
    if (piece.token >= 0) {
      writer.copy(piece.begin, piece.end);
    } else {
      for (size_t at = piece.begin; at < piece.end; ++at)
        writer.write(byte_characters()[static_cast<uint8_t>(document.text[at])], document.origin(at));
    }
    writer.end_piece(piece.token);
  }
  writer.finish(document);
}

}  // namespace mh::detail
