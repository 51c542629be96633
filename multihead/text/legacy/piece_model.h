// SentencePiece's model files: pieces with scores, and how text is made ready for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mh::detail {

struct ScoredPiece {
  enum class Kind : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  std::string text;
  float score = 0;
  Kind kind = Kind::normal;
};

struct PieceModel {
  std::vector<ScoredPiece> pieces;  // by id
  bool is_bpe = false;              // else unigram
  bool byte_fallback = false;
  std::string charsmap;  // of the normaliser Precompiled
  bool dummy_prefix = true;
  bool remove_extra_spaces = true;

  // Where the unknown piece stands; 0 where there is none.
  size_t unknown() const;
};

// `bytes` is a ModelProto in the wire format of protocol buffers: fields that are not needed are passed over. Throws:
// invalid_argument, beginning with `where`, where a length leaves the file, a piece is empty, not UTF-8 or there twice,
// or the model is neither unigram nor BPE.
PieceModel read_piece_model(std::string_view bytes, const std::string& where);

}  // namespace mh::detail
