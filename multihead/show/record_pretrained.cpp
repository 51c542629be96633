// Text to a pretrained model's inputs, and their tokens as text.
#include "multihead/show/record_pretrained.h"

#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

// A token as it stands in the text; those that were put around it as they are spelled.
RecordedText text_of(const std::string& name, const Tokenizer& tokenizer, const Encoded& encoded,
                     const std::string& text) {
  RecordedText out{name, {}, {}};
  for (size_t n = 0; n < encoded.ids.size(); ++n) {
    const TextSpan span = encoded.offsets[n];
    const auto begin = static_cast<size_t>(span.begin), end = static_cast<size_t>(span.end);
    const bool inside = encoded.words[n] >= 0 && begin < end && end <= text.size();
    const std::string own = inside ? whole_utf8(text.substr(begin, end - begin)) : "";
    out.tokens.push_back(own.empty() ? whole_utf8(tokenizer.token(encoded.ids[n])) : own);
    out.words.push_back(encoded.words[n]);
  }
  return out;
}

}  // namespace

bool is_pretrained(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / "config.json", ignored);
}

Recording record(const Pretrained& model, const Tokenizer& tokenizer, const std::string& text,
                 const std::string& written) {
  const Architecture& architecture = model.architecture();
  check(!architecture.patches, "record: a {} reads images; expected a model that reads text", architecture.family);
  const Encoded encoded = tokenizer.encode_input(text);
  check(!encoded.ids.empty(), "record: the text has no token; expected one or more");
  ModelInputs inputs;
  inputs.tokens = token_batch({encoded.ids});
  if (architecture.embedding && architecture.embedding->types > 0)
    inputs.types = tensor<int32_t>(encoded.types, {static_cast<int64_t>(encoded.types.size())});
  Recording out;
  if (architecture.cross_attention) {
    const Encoded target = tokenizer.encode_input(written, {.add_special = false});
    std::vector<int32_t> ids = target.ids;
    ids.insert(ids.begin(), architecture.tokens.decoder_start);
    inputs.decoder = token_batch({ids});
    const RecordedText tokens = text_of("written", tokenizer, target, written);
    RecordedText read{"read", {whole_utf8(tokenizer.token(ids.front()))}, {-1}}, written_tokens = tokens;
    read.tokens.insert(read.tokens.end(), tokens.tokens.begin(), tokens.tokens.end());
    read.words.insert(read.words.end(), tokens.words.begin(), tokens.words.end());
    written_tokens.tokens.push_back(
        architecture.tokens.ends.empty() ? "" : whole_utf8(tokenizer.token(architecture.tokens.ends.front())));
    written_tokens.words.push_back(-1);
    out.texts = {text_of("source", tokenizer, encoded, text), std::move(read), std::move(written_tokens)};
  } else {
    out.texts = {text_of("text", tokenizer, encoded, text)};
  }
  AttentionRecorder recorder;
  Pass pass = Pass::inference().watched_by(&recorder);
  model.forward(inputs, pass);
  out.layers = std::move(recorder.layers);
  return out;
}

Recording record_pretrained(const std::string& folder, const std::string& text, const std::string& written) {
  const Tokenizer tokenizer = Tokenizer::load((std::filesystem::path(folder) / "tokenizer.json").string());
  return record(Pretrained::load(folder), tokenizer, text, written);
}

}  // namespace mh
