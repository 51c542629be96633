// The models of tokenizer.json that give a word its tokens: BPE, WordPiece, WordLevel, Unigram.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {

using TokenIds = std::unordered_map<std::string, int32_t>;

// A token of a word, and which of the word's bytes it stands for.
struct WordToken {
  int32_t id;
  uint32_t begin, end;
};

using WordTokens = std::vector<WordToken>;

class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the tokens of `word`, which is UTF-8 and not empty. Throws: invalid_argument where it needs a token for
  // what is unknown and the file names none.
  virtual void encode(std::string_view word, WordTokens& out) const = 0;
  // Whether a token says by its spelling if it begins a word.
  virtual bool marks_words() const { return false; }
};

// What a splitter that spells bytes as characters leaves to the model: bytes as they are, or their spelling.
enum class WordsAre { text, bytes };

struct ReadModel {
  std::unique_ptr<WordModel> model;
  WordsAre words = WordsAre::text;
};

// The model's own tokens land in `ids`. `spelled` says that every word comes from ByteLevel: a model that can then
// takes the bytes themselves. Throws: as read_normalisers.
ReadModel read_word_model(const JsonElement& element, const std::string& where, bool spelled, TokenIds& ids);

// One for each type; `where` begins every refusal.
ReadModel read_bpe(const JsonElement& element, const std::string& where, bool spelled, TokenIds& ids);
std::unique_ptr<WordModel> read_wordpiece(const JsonElement& element, const std::string& where, TokenIds& ids);
std::unique_ptr<WordModel> read_word_level(const JsonElement& element, const std::string& where, TokenIds& ids);
std::unique_ptr<WordModel> read_unigram(const JsonElement& element, const std::string& where, TokenIds& ids);

// A vocabulary that is an object of tokens and ids. Throws: as above.
void read_word_vocabulary(const JsonFields& model, TokenIds& ids);

}  // namespace mh::detail
