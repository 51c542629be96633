// The handle others hold: checks, files, and the doors to the state behind it.
#include "multihead/text/tokenizer.h"

#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"
#include "multihead/text/assemble.h"
#include "multihead/text/legacy/folder.h"
#include "multihead/text/tokenizer_state.h"
#include "multihead/text/unicode/code_set.h"

namespace mh {
const detail::TokenizerState& Tokenizer::state(std::string_view op) const {
  check(state_ != nullptr, "{}: this tokenizer is empty; expected one that was loaded or trained", op);
  return *state_;
}

Tokenizer Tokenizer::load(const std::string& path) {
  std::error_code ignored;
  const std::string json = std::filesystem::is_directory(path, ignored)         ? detail::folder_as_json(path)
                           : path.ends_with(".model") || path.ends_with(".spm") ? detail::piece_file_as_json(path)
                                                                                : detail::read_tokenizer_file(path);
  return parse(json, fmt::format("tokenizer {}", printable_path(path)));
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& name) {
  return Tokenizer(detail::read_tokenizer_json(json, name));
}

std::string Tokenizer::json() const {
  const detail::TokenizerState& at = state("json");
  return at.is_plain() ? detail::write_tokenizer_json(at.spec) : at.steps().source;
}

void Tokenizer::save(const std::string& path) const { write_durably(path, json()); }

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> out;
  encode(text, out);
  return out;
}

void Tokenizer::encode(std::string_view text, std::vector<int32_t>& out) const { state("encode").encode(text, out); }

Encoded Tokenizer::encode_input(std::string_view text, const EncodeOptions& options) const {
  const detail::Pipeline& steps = state("encode_input").steps();
  return detail::assemble(steps, {text}, options, detail::Windows::first).front();
}

Encoded Tokenizer::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  const detail::Pipeline& steps = state("encode_pair").steps();
  return detail::assemble(steps, {first, second}, options, detail::Windows::first).front();
}

std::vector<Encoded> Tokenizer::encode_windows(std::string_view text, const EncodeOptions& options) const {
  return detail::assemble(state("encode_windows").steps(), {text}, options, detail::Windows::all);
}

std::vector<Encoded> Tokenizer::encode_pair_windows(std::string_view first, std::string_view second,
                                                    const EncodeOptions& options) const {
  return detail::assemble(state("encode_pair_windows").steps(), {first, second}, options, detail::Windows::all);
}

void count_in_code_points(Encoded& encoded, std::string_view text, int8_t sequence) {
  std::vector<uint32_t> before(text.size() + 1);  // by byte: the characters that begin before it
  uint32_t count = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    detail::next_character(text, at);
    before[begin] = count++;
    for (size_t inside = begin + 1; inside < at; ++inside) before[inside] = count;
  }
  before.back() = count;
  for (size_t i = 0; i < encoded.offsets.size(); ++i) {
    TextSpan& span = encoded.offsets[i];
    if (encoded.sequences[i] == sequence && span.end < before.size()) span = {before[span.begin], before[span.end]};
  }
}

std::string Tokenizer::decode(const int32_t* ids, size_t count) const {
  const detail::TokenizerState& at = state("decode");
  for (size_t i = 0; i < count; ++i)
    check(ids[i] >= 0 && static_cast<size_t>(ids[i]) < at.spec.tokens.size(),
          "decode: {} is not a token; expected ids from 0 to {}", ids[i], at.spec.tokens.size() - 1);
  if (!at.is_plain()) return at.steps().decode(ids, count);
  std::string out;
  for (size_t i = 0; i < count; ++i) out += at.bytes[static_cast<size_t>(ids[i])];  // a special token has none
  if (at.spec.strip_space && out.starts_with(' ')) out.erase(0, 1);
  return out;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const { return decode(ids.data(), ids.size()); }

int32_t Tokenizer::size() const { return static_cast<int32_t>(state("size").spec.tokens.size()); }

std::optional<int32_t> Tokenizer::id(std::string_view token) const {
  const detail::TokenizerState& at = state("id");
  const auto found = at.ids.find(token);
  return found == at.ids.end() ? std::nullopt : std::optional(found->second);
}

const std::string& Tokenizer::token(int32_t id) const {
  check(id >= 0 && id < size(), "token: {} is not a token; expected ids from 0 to {}", id, size() - 1);
  return state_->spec.tokens[static_cast<size_t>(id)];
}

bool Tokenizer::is_special(int32_t id) const {
  check(id >= 0 && id < size(), "is_special: {} is not a token; expected ids from 0 to {}", id, size() - 1);
  return state_->spec.special[static_cast<size_t>(id)];
}

bool Tokenizer::marks_words() const { return state("marks_words").steps().model->marks_words(); }

}  // namespace mh
