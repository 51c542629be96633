// BPE: a word's characters, or its bytes, merged pair by pair.
#include <algorithm>
#include <array>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/text/merges.h"
#include "multihead/text/pipeline/models/byte_alphabet.h"
#include "multihead/text/pipeline/models/word_model.h"
#include "multihead/text/pipeline/read/read_parts.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/word_table.h"

namespace mh::detail {
namespace {

struct BpeOptionsRead {
  std::string prefix, suffix;          // of what goes on in a word, and of what ends it
  std::optional<std::string> unknown;  // the token
  bool fuse_unknown = false, byte_fallback = false, ignore_merges = false;
};

void append_word_tokens(const std::vector<Symbol>& symbols, WordTokens& out) {
  uint32_t at = 0;
  for (const Symbol& symbol : symbols) {
    out.push_back({symbol.token, at, at + symbol.bytes});
    at += symbol.bytes;
  }
}

// A vocabulary that is asked by spelling, without a string for each question.
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::pair<std::string, int32_t>> tokens) : tokens_(std::move(tokens)) {
    std::vector<WordTable::Word> words;
    for (const auto& [token, id] : tokens_) words.push_back({token, id});
    table_ = WordTable(words);
  }
  Vocabulary(const Vocabulary&) = delete;  // the table views the strings
  Vocabulary& operator=(const Vocabulary&) = delete;

  int32_t find(std::string_view token) const { return table_.find(token); }  // -1 where there is none

 private:
  std::vector<std::pair<std::string, int32_t>> tokens_;
  WordTable table_;
};

// Words of bytes, each of which has a token.
class ByteBpe : public WordModel {
 public:
  using Bytes = std::array<int32_t, 256>;

  // `last`: the tokens of bytes at the end of a word. `whole`: words that are tokens as they are.
  ByteBpe(const Bytes& bytes, const Bytes& last, const std::vector<Merge>& merges,
          std::vector<std::pair<std::string, int32_t>> whole)
      : bytes_(bytes), last_(last), merges_(merges), whole_(std::move(whole)) {}

  void encode(std::string_view word, WordTokens& out) const override {
    if (const int32_t token = whole_.find(word); token >= 0) {
      out.push_back({token, 0, static_cast<uint32_t>(word.size())});
      return;
    }
    thread_local std::vector<Symbol> symbols;
    symbols.clear();
    for (const char c : word) symbols.push_back({bytes_[static_cast<uint8_t>(c)], 1});
    symbols.back().token = last_[static_cast<uint8_t>(word.back())];
    merges_.merge(symbols);
    append_word_tokens(symbols, out);
  }

 private:
  Bytes bytes_, last_;
  Merges merges_;
  Vocabulary whole_;
};

// Words of characters.
class CharacterBpe : public WordModel {
 public:
  CharacterBpe(BpeOptionsRead options, const std::vector<Merge>& merges, const TokenIds& ids)
      : options_(std::move(options)), merges_(merges), vocabulary_({ids.begin(), ids.end()}) {
    if (options_.unknown) unknown_ = vocabulary_.find(*options_.unknown);
    for (size_t byte = 0; byte < bytes_.size(); ++byte)
      bytes_[byte] = options_.byte_fallback ? vocabulary_.find(fmt::format("<0x{:02X}>", byte)) : -1;
  }

  void encode(std::string_view word, WordTokens& out) const override {
    if (options_.ignore_merges) {
      if (const int32_t token = vocabulary_.find(word); token >= 0) {
        out.push_back({token, 0, static_cast<uint32_t>(word.size())});
        return;
      }
    }
    std::vector<Symbol> symbols = first_symbols(word);
    merges_.merge(symbols);
    append_word_tokens(symbols, out);
  }
  bool marks_words() const override { return !options_.prefix.empty(); }

 private:
  std::vector<Symbol> first_symbols(std::string_view word) const {
    std::vector<Symbol> out;
    uint32_t unknown = 0;  // bytes that are not in `out` yet
    const auto end_unknown = [&] {
      if (unknown > 0) out.push_back({needed(), unknown});
      unknown = 0;
    };
    std::string spelled;
    for (size_t at = 0; at < word.size();) {
      const size_t begin = at;
      next_character(word, at);
      const std::string_view character = spell(word, begin, at, spelled);
      const auto size = static_cast<uint32_t>(at - begin);
      if (const int32_t token = vocabulary_.find(character); token >= 0) {
        end_unknown();
        out.push_back({token, size});
      } else if (all_bytes(character)) {  // unknown characters before it come behind it, as in Hugging Face's
        for (const char c : character) out.push_back({bytes_[static_cast<uint8_t>(c)], 1});
      } else if (options_.unknown) {
        if (!options_.fuse_unknown) end_unknown();
        needed();
        unknown += size;
      }
    }
    end_unknown();
    return out;
  }

  std::string_view spell(std::string_view word, size_t begin, size_t end, std::string& buffer) const {
    const bool goes_on = begin > 0 && !options_.prefix.empty();
    const bool ends = end == word.size() && !options_.suffix.empty();
    if (!goes_on && !ends) return word.substr(begin, end - begin);
    buffer = goes_on ? options_.prefix : std::string();
    buffer.append(word, begin, end - begin);
    if (ends) buffer += options_.suffix;
    return buffer;
  }

  bool all_bytes(std::string_view character) const {
    return std::all_of(character.begin(), character.end(),
                       [&](char c) { return bytes_[static_cast<uint8_t>(c)] >= 0; });
  }

  int32_t needed() const {
    check(unknown_ >= 0, "encode: a character is unknown, and {} is not in the vocabulary",
          in_quotes(*options_.unknown));
    return unknown_;
  }

  BpeOptionsRead options_;
  Merges merges_;
  Vocabulary vocabulary_;
  int32_t unknown_ = -1;
  std::array<int32_t, 256> bytes_{};
};

// The two parts of a merge: ["a", "b"], or "a b" as older files have it. Nothing where it is neither.
std::optional<std::pair<std::string_view, std::string_view>> two_parts(const JsonElement& merge) {
  std::string_view left, right;
  simdjson::dom::array both;
  if (merge.get(both) == simdjson::SUCCESS) {
    if (both.size() != 2 || both.at(0).get(left) != simdjson::SUCCESS || both.at(1).get(right) != simdjson::SUCCESS)
      return std::nullopt;
    return std::pair(left, right);
  }
  if (merge.get(left) != simdjson::SUCCESS) return std::nullopt;
  const size_t space = left.find(' ');
  if (space == std::string_view::npos || left.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return std::pair(left.substr(0, space), left.substr(space + 1));
}

std::vector<Merge> read_ranked(const JsonFields& model, const TokenIds& ids, size_t prefix) {
  const std::string where = model.where() + ": merges";
  std::vector<Merge> out;
  const auto id_of = [&](const std::string& token) {
    const auto found = ids.find(token);
    check(found != ids.end(), "{}: number {} needs the token {}, which is not in the vocabulary", where, out.size(),
          in_quotes(token));
    return found->second;
  };
  for (const JsonElement merge : model.array("merges")) {
    const auto parts = two_parts(merge);
    check(parts.has_value(), "{}: number {} is not a pair of tokens; expected [\"a\", \"b\"] or \"a b\"", where,
          out.size());
    const std::string left(parts->first), right(parts->second);
    check(right.size() >= prefix, "{}: number {} goes on with {}, which is shorter than the prefix", where, out.size(),
          in_quotes(right));
    out.push_back({{id_of(left), id_of(right)}, id_of(left + right.substr(prefix))});
  }
  return out;
}

std::optional<ByteBpe::Bytes> byte_tokens(const TokenIds& ids, const std::string& suffix) {
  ByteBpe::Bytes out{};
  for (size_t byte = 0; byte < out.size(); ++byte) {
    const auto found = ids.find(byte_characters()[byte] + suffix);
    if (found == ids.end()) return std::nullopt;
    out[byte] = found->second;
  }
  return out;
}

std::vector<std::pair<std::string, int32_t>> spelled_words(const TokenIds& ids) {
  std::vector<std::pair<std::string, int32_t>> out;
  for (const auto& [token, id] : ids)
    if (auto bytes = read_bytes(token)) out.emplace_back(std::move(*bytes), id);
  return out;
}

}  // namespace

ReadModel read_bpe(const JsonElement& element, const std::string& where, bool spelled, TokenIds& ids) {
  const JsonFields model(element, where,
                         {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                          "byte_fallback", "ignore_merges", "vocab", "merges"});
  double dropout = 0;
  if (const auto given = model.find("dropout"))
    if (given->get(dropout) != simdjson::SUCCESS || dropout != 0) refuse_part(where, "dropout", "none");
  const auto text = [&](std::string_view name) {
    return model.find(name) ? std::string(model.string(name)) : std::string();
  };
  BpeOptionsRead options{.prefix = text("continuing_subword_prefix"),
                         .suffix = text("end_of_word_suffix"),
                         .unknown = model.find("unk_token") ? std::optional(text("unk_token")) : std::nullopt,
                         .fuse_unknown = model.flag("fuse_unk", false),
                         .byte_fallback = model.flag("byte_fallback", false),
                         .ignore_merges = model.flag("ignore_merges", false)};
  read_word_vocabulary(model, ids);
  const std::vector<Merge> merges = read_ranked(model, ids, options.prefix.size());
  if (spelled && options.prefix.empty()) {
    const auto bytes = byte_tokens(ids, ""), last = byte_tokens(ids, options.suffix);
    if (bytes && last) {
      auto whole = options.ignore_merges ? spelled_words(ids) : std::vector<std::pair<std::string, int32_t>>();
      return {std::make_unique<ByteBpe>(*bytes, *last, merges, std::move(whole)), WordsAre::bytes};
    }
  }
  return {std::make_unique<CharacterBpe>(std::move(options), merges, ids)};
}

}  // namespace mh::detail
