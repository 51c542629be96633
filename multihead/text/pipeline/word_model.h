// The models of tokenizer.json that give a word its tokens: WordPiece, WordLevel, Unigram.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "multihead/text/pipeline/json_fields.h"

namespace mh::detail {

using TokenIds = std::unordered_map<std::string, int32_t>;

class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the tokens of `word`, which is UTF-8 and not empty. Throws: invalid_argument where it needs a token for
  // what is unknown and the file names none.
  virtual void encode(std::string_view word, std::vector<int32_t>& out) const = 0;
};

// The model's own tokens land in `ids`. Throws: as read_normalisers.
std::unique_ptr<WordModel> read_word_model(const JsonElement& element, const std::string& where, TokenIds& ids);

// One for each type; `where` begins every refusal.
std::unique_ptr<WordModel> read_wordpiece(const JsonElement& element, const std::string& where, TokenIds& ids);
std::unique_ptr<WordModel> read_word_level(const JsonElement& element, const std::string& where, TokenIds& ids);
std::unique_ptr<WordModel> read_unigram(const JsonElement& element, const std::string& where, TokenIds& ids);

}  // namespace mh::detail
