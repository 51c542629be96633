// Tokens that are looked for in the text itself before any model sees it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/text/pipeline/json_fields.h"
#include "multihead/text/pipeline/piece.h"
#include "multihead/text/pipeline/trie.h"

namespace mh::detail {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  // found only where no word touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
  bool normalized = true;    // looked for in the normalised text, by its normalised spelling
  bool special = false;      // decode skips it
};

// Throws: invalid_argument, beginning with `where`.
AddedToken read_added_token(const JsonElement& element, const std::string& where);

// A set of added tokens that are looked for together: the leftmost first, of those the longest.
class AddedTokens {
 public:
  // `spelling` is not empty.
  void add(const AddedToken& token, std::string_view spelling);
  // Appends the piece cut at the tokens in it. Special ones are passed over where `find_special` is false.
  void cut(const Piece& piece, bool find_special, Pieces& out) const;

 private:
  std::vector<AddedToken> tokens_;
  Trie trie_;
};

}  // namespace mh::detail
