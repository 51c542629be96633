// The stretch of text that normalisers and splitters work on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mh::detail {

struct Piece {
  std::string text;       // UTF-8
  bool at_start = false;  // begins where the text that was given begins
  bool cut = false;       // a normaliser dropped its first characters, so that a part split off begins later
  int32_t token = -1;     // an added token's id, found in the text: `text` is then empty
};

using Pieces = std::vector<Piece>;

}  // namespace mh::detail
