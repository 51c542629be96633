// Tokens that are looked for in the text itself before any model sees it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/text/pipeline/document.h"
#include "multihead/text/pipeline/models/trie.h"
#include "multihead/text/pipeline/read/json_fields.h"

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
  AddedTokens() = default;
  // Each with its spelling, which is not empty.
  explicit AddedTokens(const std::vector<std::pair<AddedToken, std::string>>& tokens);

  bool empty() const { return tokens_.empty(); }
  // Appends `text`, which begins at byte `begin` of a document, cut at the tokens in it. Special ones are passed over
  // where `find_special` is false.
  void cut(std::string_view text, uint32_t begin, bool find_special, Pieces& out) const;

 private:
  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_{};  // by byte: whether a token does
  Trie trie_;
};

}  // namespace mh::detail
