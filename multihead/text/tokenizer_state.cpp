// The tables of a tokenizer, and the way of a text through them.
#include "multihead/text/tokenizer_state.h"

#include "multihead/base/error.h"
#include "multihead/text/normalise.h"
#include "multihead/text/pipeline/models/byte_alphabet.h"
#include "multihead/text/pipeline/read/json_fields.h"
#include "multihead/text/words.h"

namespace mh::detail {
namespace {

std::array<int32_t, 256> tokens_of_bytes(const TokenizerState& state, const std::string& name) {
  std::array<int32_t, 256> out{};
  for (size_t byte = 0; byte < out.size(); ++byte) {
    const std::string& character = byte_characters()[byte];
    const auto found = state.ids.find(character);
    if (found == state.ids.end())
      fail(ErrorKind::unsupported, "{}: the vocabulary has no token '{}' for byte {}; expected one for each of the 256",
           name, character, byte);
    check(!state.spec.special[static_cast<size_t>(found->second)],
          "{}: the special token '{}' stands for byte {}; expected special tokens that no text becomes", name,
          character, byte);
    out[byte] = found->second;
  }
  return out;
}

std::vector<Symbol> byte_symbols(const TokenizerState& state, std::string_view word) {
  std::vector<Symbol> out;
  out.reserve(word.size());
  for (const char c : word) out.push_back({state.byte_tokens[static_cast<uint8_t>(c)], 1});
  return out;
}

// Tokens that a merge of their bytes ends in: not all, for a list of merges may make one token in many ways.
WordTable whole_words(const TokenizerState& state) {
  std::vector<WordTable::Word> words;
  for (size_t i = 0; i < state.bytes.size(); ++i) {
    std::vector<Symbol> symbols = byte_symbols(state, state.bytes[i]);
    state.merges.merge(symbols);
    const auto id = static_cast<int32_t>(i);
    if (symbols.size() == 1 && symbols[0].token == id) words.push_back({state.bytes[i], id});
  }
  return WordTable(words);
}

}  // namespace

TokenizerState::TokenizerState(TokenizerSpec spec_read, const std::string& name) : spec(std::move(spec_read)) {
  ids.reserve(spec.tokens.size());
  bytes.reserve(spec.tokens.size());
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    ids.emplace(spec.tokens[i], static_cast<int32_t>(i));
    // As in Hugging Face's decoder, a token with a character that stands for no byte is its own text.
    bytes.push_back(spec.special[i] ? std::string() : read_bytes(spec.tokens[i]).value_or(spec.tokens[i]));
  }
  for (const Merge& merge : spec.merges)
    check(!spec.special[static_cast<size_t>(merge.result)],
          "{}: a merge makes the special token {}; expected special tokens that no text becomes", name,
          in_quotes(spec.tokens[static_cast<size_t>(merge.result)]));
  byte_tokens = tokens_of_bytes(*this, name);
  merges = Merges(spec.merges);
  words = whole_words(*this);
}

TokenizerState::TokenizerState(std::unique_ptr<const Pipeline> read) : pipeline_(std::move(read)) {
  spec.tokens = pipeline_->tokens;
  spec.special = pipeline_->special;
  for (size_t i = 0; i < spec.tokens.size(); ++i) ids.emplace(spec.tokens[i], static_cast<int32_t>(i));
}

std::string_view prepare(const TokenizerSpec& spec, std::string_view text, std::string& buffer) {
  if (text.empty()) return text;
  if (spec.normalisation != Normalisation::none) text = buffer = normalise(text, spec.normalisation);
  if (spec.lowercase) text = buffer = lowercase(text);
  if (spec.prefix == PrefixSpace::none || (spec.prefix == PrefixSpace::unless_there && text.front() == ' '))
    return text;
  std::string spaced;
  spaced.reserve(text.size() + 1);
  spaced.push_back(' ');
  spaced += text;
  buffer = std::move(spaced);
  return buffer;
}

const Pipeline& TokenizerState::steps() const {
  std::call_once(once_, [&] {
    if (!pipeline_) pipeline_ = parse_pipeline(write_tokenizer_json(spec), "tokenizer");
  });
  return *pipeline_;
}

void TokenizerState::encode(std::string_view text, std::vector<int32_t>& out) const {
  if (!is_plain()) return pipeline_->encode(text, false, out);
  std::string buffer;
  const std::string_view prepared = prepare(spec, text, buffer);
  for (size_t begin = 0; begin < prepared.size();) {
    const size_t end = word_end(prepared, begin);
    const std::string_view word = prepared.substr(begin, end - begin);
    if (const int32_t token = words.find(word); token >= 0) {
      out.push_back(token);
    } else {
      std::vector<Symbol> symbols = byte_symbols(*this, word);
      merges.merge(symbols);
      for (const Symbol& symbol : symbols) out.push_back(symbol.token);
    }
    begin = end;
  }
}

}  // namespace mh::detail
