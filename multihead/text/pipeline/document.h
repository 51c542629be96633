// A whole text cut into pieces: what splitters work on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/pipeline/aligned.h"

namespace mh::detail {

// Bytes of a document's text.
struct Piece {
  uint32_t begin = 0, end = 0;
  int32_t token = -1;  // an added token's id, found in the text: steps leave such a piece as it is
};

using Pieces = std::vector<Piece>;

// Pieces follow one another and are not empty; between them lies what was removed.
struct Document {
  Document() = default;
  Document(const Document&) = delete;  // `text` may view `buffer`
  Document& operator=(const Document&) = delete;

  std::string_view text;        // UTF-8: what was given, or `buffer`
  std::string buffer;           // once a step has changed the text
  std::vector<Origin> origins;  // as in Aligned; empty while the text is what was given
  Pieces pieces;

  std::string_view of(const Piece& piece) const { return text.substr(piece.begin, piece.end - piece.begin); }
  Origin origin(size_t at) const { return origins.empty() ? place_of(text, at, 0) : origins[at]; }
};

// Puts together the texts of pieces that a step changes one by one.
class DocumentWriter {
 public:
  explicit DocumentWriter(const Document& from) : from_(from) { text_.reserve(from.text.size()); }

  // Appends bytes of the old text as they are, or `what` with one origin.
  void copy(size_t begin, size_t end);
  void write(std::string_view what, Origin origin);
  // Everything since the last call is a piece.
  void end_piece(int32_t token = -1);
  void finish(Document& out);

 private:
  const Document& from_;
  std::string text_;
  std::vector<Origin> origins_;
  Pieces pieces_;
};

}  // namespace mh::detail
