// The tables of a tokenizer, and the way of a text through them.
#include "multihead/text/tokenizer_state.h"

#include "multihead/base/error.h"
#include "multihead/text/normalise.h"
#include "multihead/text/pipeline/byte_alphabet.h"
#include "multihead/text/pipeline/json_fields.h"
#include "multihead/text/words.h"

namespace mh::detail {
namespace {

std::array<int32_t, 256> byte_tokens(const TokenizerState& state, const std::string& name) {
  std::array<int32_t, 256> out{};
  for (size_t byte = 0; byte < out.size(); ++byte) {
    const std::string& character = byte_characters()[byte];
    const auto found = state.ids.find(character);
    check(found != state.ids.end(),
          "{}: the vocabulary has no token '{}' for byte {}; expected one for each of the 256", name, character, byte);
    check(!state.spec.special[static_cast<size_t>(found->second)],
          "{}: the special token '{}' is the sign of byte {}; expected special tokens that no text becomes", name,
          character, byte);
    out[byte] = found->second;
  }
  return out;
}

// Tokens that a merge of their bytes ends in: not all, for a list of merges may make one token in many ways.
WordTable whole_words(const TokenizerState& state) {
  std::vector<WordTable::Word> words;
  std::vector<int32_t> merged;
  for (size_t i = 0; i < state.bytes.size(); ++i) {
    merged.clear();
    state.merges.encode(state.bytes[i], merged);
    const auto id = static_cast<int32_t>(i);
    if (merged.size() == 1 && merged[0] == id) words.push_back({state.bytes[i], id});
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
  merges = Merges(byte_tokens(*this, name), spec.merges);
  words = whole_words(*this);
}

TokenizerState::TokenizerState(std::unique_ptr<const Pipeline> read) : pipeline(std::move(read)) {
  spec.tokens = pipeline->tokens;
  spec.special = pipeline->special;
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

std::vector<int32_t> TokenizerState::encode_finding(std::string_view text, const EncodeOptions& options) const {
  std::vector<int32_t> out;
  if (pipeline) {
    pipeline->encode(text, options.find_special, out);
    return out;
  }
  std::string buffer;
  const std::string_view prepared = prepare(spec, text, buffer);
  for (size_t i = 0; options.find_special && i < spec.tokens.size(); ++i)
    if (spec.special[i] && (text.find(spec.tokens[i]) != text.npos || prepared.find(spec.tokens[i]) != prepared.npos))
      fail(ErrorKind::unsupported, "encode_input: the text holds the special token {}, which is not looked for here",
           in_quotes(spec.tokens[i]));
  encode(text, out);
  return out;
}

void TokenizerState::encode(std::string_view text, std::vector<int32_t>& out) const {
  if (pipeline) return pipeline->encode(text, false, out);
  std::string buffer;
  const std::string_view prepared = prepare(spec, text, buffer);
  for (size_t begin = 0; begin < prepared.size();) {
    const size_t end = word_end(prepared, begin);
    const std::string_view word = prepared.substr(begin, end - begin);
    if (const int32_t token = words.find(word); token >= 0) {
      out.push_back(token);
    } else {
      merges.encode(word, out);
    }
    begin = end;
  }
}

}  // namespace mh::detail
