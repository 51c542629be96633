// Tokens to text as they come, in whole characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh::detail {

// A token's text can depend on the tokens before it (a leading space is taken off the first one), and a character's
// bytes may be spread over several tokens. So a few tokens are decoded again with every new one, and what that adds is
// passed on once it ends with a whole character.
class TextStream {
 public:
  // Behind these tokens, whose text is not passed on.
  TextStream(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt);

  // What the token adds, of it all that is whole; special tokens, and ids that are no tokens, add nothing.
  std::string add(int32_t id);
  // What still waited for its last bytes, without characters that never became whole.
  std::string rest();

 private:
  std::string_view fresh(std::string_view text) const;  // what is not passed on yet
  std::string take(std::string_view text);
  const Tokenizer& tokenizer_;
  std::vector<int32_t> window_;
  size_t passed_on_;      // tokens of the window
  std::string passed_{};  // their text
};

}  // namespace mh::detail
