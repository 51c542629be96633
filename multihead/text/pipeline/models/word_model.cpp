// WordPiece and WordLevel, and the reading of a vocabulary that is an object.
#include "multihead/text/pipeline/models/word_model.h"

#include <limits>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/models/trie.h"
#include "multihead/text/pipeline/read/read_parts.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

// The id of the token for what is unknown.
struct Unknown {
  std::string token;
  int32_t id = -1;

  Unknown(const JsonFields& model, const TokenIds& ids) : token(model.string("unk_token")) {
    if (const auto found = ids.find(token); found != ids.end()) id = found->second;
  }

  int32_t needed() const {
    check(id >= 0, "encode: a word is unknown, and {} is not in the vocabulary", in_quotes(token));
    return id;
  }
};

uint32_t end_of(std::string_view word) { return static_cast<uint32_t>(word.size()); }

class WordPiece : public WordModel {
 public:
  WordPiece(const JsonFields& model, const TokenIds& ids)
      : unknown_(model, ids), longest_(model.integer("max_input_chars_per_word")) {
    const std::string_view prefix = model.string("continuing_subword_prefix");
    marked_ = !prefix.empty();
    std::vector<std::pair<std::string, int32_t>> first, later;
    for (const auto& [token, id] : ids) {
      first.emplace_back(token, id);
      if (token.size() > prefix.size() && token.starts_with(prefix))
        later.emplace_back(token.substr(prefix.size()), id);
    }
    first_ = Trie(std::move(first));
    later_ = Trie(std::move(later));
  }

  // The longest token first; one part without a token makes the whole word unknown.
  void encode(std::string_view word, WordTokens& out) const override {
    int64_t characters = 0;
    for (const char c : word) characters += U8_IS_TRAIL(c) ? 0 : 1;
    const size_t before = out.size();
    bool known = characters <= longest_;
    for (size_t at = 0; known && at < word.size();) {
      WordToken found{-1, static_cast<uint32_t>(at), 0};
      (at > 0 ? later_ : first_).each_prefix(word, at, [&](size_t end, int32_t id) {
        found.id = id;
        found.end = static_cast<uint32_t>(end);
      });
      known = found.id >= 0;
      out.push_back(found);
      at = found.end;
    }
    if (known) return;
    out.resize(before);
    out.push_back({unknown_.needed(), 0, end_of(word)});
  }
  bool marks_words() const override { return marked_; }

 private:
  Unknown unknown_;
  int64_t longest_;
  bool marked_ = false;
  Trie first_, later_;  // what begins a word, and without its prefix what goes on
};

class WordLevel : public WordModel {
 public:
  WordLevel(const JsonFields& model, const TokenIds& ids) : ids_(ids), unknown_(model, ids) {}

  void encode(std::string_view word, WordTokens& out) const override {
    const auto found = ids_.find(std::string(word));
    out.push_back({found != ids_.end() ? found->second : unknown_.needed(), 0, end_of(word)});
  }
  bool marks_words() const override { return true; }

 private:
  TokenIds ids_;
  Unknown unknown_;
};

}  // namespace

void read_word_vocabulary(const JsonFields& model, TokenIds& ids) {
  const std::string where = model.where() + ": vocab";
  for (const auto& [token, value] : model.object("vocab")) {
    int64_t id = 0;
    check(value.get(id) == simdjson::SUCCESS, "{}: the id of {} is not a whole number", where, in_quotes(token));
    check(id >= 0 && id < std::numeric_limits<int32_t>::max(), "{}: the token {} has the id {}; expected 0 to 2^31 - 2",
          where, in_quotes(token), id);
    const bool fresh = ids.emplace(token, static_cast<int32_t>(id)).second;
    check(fresh, "{}: the token {} stands there twice", where, in_quotes(token));
  }
}

std::unique_ptr<WordModel> read_wordpiece(const JsonElement& element, const std::string& where, TokenIds& ids) {
  const JsonFields model(element, where,
                         {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  read_word_vocabulary(model, ids);
  return std::make_unique<WordPiece>(model, ids);
}

std::unique_ptr<WordModel> read_word_level(const JsonElement& element, const std::string& where, TokenIds& ids) {
  const JsonFields model(element, where, {"type", "vocab", "unk_token"});
  read_word_vocabulary(model, ids);
  return std::make_unique<WordLevel>(model, ids);
}

ReadModel read_word_model(const JsonElement& element, const std::string& where, bool spelled, TokenIds& ids) {
  const std::string_view type = json_type(element, where);
  if (type == "BPE") return read_bpe(element, where, spelled, ids);
  if (type == "WordPiece") return {read_wordpiece(element, where, ids)};
  if (type == "WordLevel") return {read_word_level(element, where, ids)};
  if (type == "Unigram") return {read_unigram(element, where, ids)};
  refuse_part(where, type, "BPE, WordPiece, Unigram or WordLevel");
}

}  // namespace mh::detail
