// What a tokenizer holds: what its file says, and the tables made from that.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "multihead/text/merges.h"
#include "multihead/text/pipeline/pipeline.h"
#include "multihead/text/tokenizer.h"
#include "multihead/text/word_table.h"

namespace mh::detail {

enum class PrefixSpace { none, always, unless_there };

struct TokenizerSpec {
  std::vector<std::string> tokens;  // by id, as the file spells them; all different
  std::vector<bool> special;        // by id
  std::vector<Merge> merges;        // by rank; `result` spells both parts of the pair
  Normalisation normalisation = Normalisation::none;
  bool lowercase = false;
  PrefixSpace prefix = PrefixSpace::none;
  bool strip_space = false;  // decode takes one leading space away
};

// A plain byte-level BPE, which keeps every byte it is given and has no steps; or a pipeline of steps.
struct TokenizerState {
  // Throws, beginning with `name`: unsupported where a byte has no token, invalid_argument where text could become a
  // special token.
  TokenizerState(TokenizerSpec spec_read, const std::string& name);
  explicit TokenizerState(std::unique_ptr<const Pipeline> read);
  TokenizerState(const TokenizerState&) = delete;  // its tables view its strings
  TokenizerState& operator=(const TokenizerState&) = delete;

  bool is_plain() const { return !bytes.empty(); }
  void encode(std::string_view text, std::vector<int32_t>& out) const;
  // The same tokenizer as steps; a plain one's are made when first asked for.
  const Pipeline& steps() const;

  TokenizerSpec spec;  // of a pipeline tokens and special alone
  std::unordered_map<std::string_view, int32_t> ids;
  std::vector<std::string> bytes;  // by id: what the token adds to a text
  std::array<int32_t, 256> byte_tokens{};
  Merges merges;
  WordTable words;  // tokens that their own bytes merge into

 private:
  mutable std::once_flag once_;
  mutable std::unique_ptr<const Pipeline> pipeline_;
};

// What encode cuts into words: normalised, lower-cased, with the space before it. `buffer` is where it lies if it is
// not `text` itself.
std::string_view prepare(const TokenizerSpec& spec, std::string_view text, std::string& buffer);

// Throws: as Tokenizer::parse.
std::shared_ptr<const TokenizerState> read_tokenizer_json(std::string_view json, const std::string& name);

// The pipeline of any file. Throws: as Tokenizer::parse.
std::unique_ptr<const Pipeline> parse_pipeline(std::string_view json, const std::string& name);

std::string write_tokenizer_json(const TokenizerSpec& spec);

}  // namespace mh::detail
