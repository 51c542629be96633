// Which tokens of a translator's vocabulary stand for languages.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh::detail {

// Told by how the tokens are spelled: deu_Latn (NLLB), de_DE (mBART), __de__ (M2M-100) and >>deu<< (Marian), by the
// names deu_Latn, de_DE, de and deu.
class Languages {
 public:
  Languages() = default;
  explicit Languages(const Tokenizer& tokenizer);

  bool empty() const { return tokens_.empty(); }
  std::vector<std::string> names() const;  // in order
  bool has(int32_t id) const;
  // `name`: one of the names, a token as it is spelled, or the part of a name before its "_", where only one begins so.
  // Throws: invalid_argument for another, with some that there are.
  int32_t token(std::string_view name) const;
  // Whether the token of the wanted language begins the source (Marian); else it begins what is written, and the
  // source's own token stands around the source.
  bool lead_the_source() const { return lead_; }

 private:
  std::map<std::string, int32_t, std::less<>> tokens_{};  // by name
  bool lead_ = false;
};

}  // namespace mh::detail
