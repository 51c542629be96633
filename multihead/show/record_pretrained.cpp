// Text to a pretrained model's inputs, and their tokens as text.
#include "multihead/show/record_pretrained.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/generate/text/words.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

Encoded encoded_input(const Tokenizer& tokenizer, const RecordInput& input, int64_t max_length) {
  const EncodeOptions options{.max_length = max_length};
  return input.pair ? tokenizer.encode_pair(input.text, *input.pair, options)
                    : tokenizer.encode_input(input.text, options);
}

// Of what the decoder writes the ids, and their tokens.
std::vector<int32_t> written_ids(const Tokenizer& tokenizer, const RecordInput& input, RecordedText& tokens) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&input.written)) {
    tokens = {"written", {}, detail::words_of(tokenizer, *ids)};
    for (const int32_t id : *ids) tokens.tokens.push_back(detail::token_text(tokenizer, id));
    return *ids;
  }
  const auto* text = std::get_if<std::string>(&input.written);
  const RecordInput written{.text = text ? *text : ""};
  const Encoded target = tokenizer.encode_input(written.text, {.add_special = false});
  tokens = recorded_text("written", tokenizer, target, written);
  return target.ids;
}

// What the decoder reads, and the texts of the page: source, read and written, a token later.
TokenBatch decoder_input(const Architecture& architecture, const Tokenizer& tokenizer, const RecordInput& input,
                         std::vector<RecordedText>& texts) {
  RecordedText written;
  std::vector<int32_t> ids = written_ids(tokenizer, input, written);
  ids.insert(ids.begin(), architecture.tokens.decoder_start);
  RecordedText read{"read", {whole_utf8(tokenizer.token(ids.front()))}, {-1}};
  read.tokens.insert(read.tokens.end(), written.tokens.begin(), written.tokens.end());
  read.words.insert(read.words.end(), written.words.begin(), written.words.end());
  written.tokens.push_back(
      architecture.tokens.ends.empty() ? "" : whole_utf8(tokenizer.token(architecture.tokens.ends.front())));
  written.words.push_back(-1);
  texts.front().name = "source";
  texts.push_back(std::move(read));
  texts.push_back(std::move(written));
  return token_batch({ids});
}

// The texts of a page whose model reads its text twice: what the decoder reads is the source, a token later.
void add_second_reading(const Architecture& architecture, const Tokenizer& tokenizer, const Encoded& encoded,
                        std::vector<RecordedText>& texts) {
  RecordedText& source = texts.front();
  source.name = "source";
  const int32_t first = architecture.wraps_last ? encoded.ids.back() : architecture.tokens.decoder_start;
  RecordedText read{"read", {whole_utf8(tokenizer.token(first))}, {-1}}, next = source;
  read.tokens.insert(read.tokens.end(), source.tokens.begin(), source.tokens.end() - 1);
  read.words.insert(read.words.end(), source.words.begin(), source.words.end() - 1);
  next.name = "next";
  texts.push_back(std::move(read));
  texts.push_back(std::move(next));
}

}  // namespace

RecordedText recorded_text(const std::string& name, const Tokenizer& tokenizer, const Encoded& encoded,
                           const RecordInput& input) {
  RecordedText out{name, {}, {}};
  int64_t words_before = 0;  // of the first text
  for (size_t n = 0; n < encoded.ids.size(); ++n)
    if (encoded.sequences[n] == 0) words_before = std::max<int64_t>(words_before, encoded.words[n] + 1);
  for (size_t n = 0; n < encoded.ids.size(); ++n) {
    const bool second = encoded.sequences[n] == 1;
    const std::string& text = second ? input.pair.value() : input.text;
    const TextSpan span = encoded.offsets[n];
    const auto begin = static_cast<size_t>(span.begin), end = static_cast<size_t>(span.end);
    const bool inside = encoded.words[n] >= 0 && begin < end && end <= text.size();
    std::string shown = inside ? whole_utf8(text.substr(begin, end - begin)) : "";
    if (shown.empty()) shown = whole_utf8(tokenizer.token(encoded.ids[n]));
    // A space that was put before the text has the place of the character behind it.
    if (inside && detail::token_text(tokenizer, encoded.ids[n]).find_first_not_of(' ') == std::string::npos)
      shown = " ";
    out.tokens.push_back(std::move(shown));
    out.words.push_back(encoded.words[n] < 0 ? -1 : encoded.words[n] + (second ? words_before : 0));
  }
  return out;
}

Recording record(const Pretrained& model, const Tokenizer& tokenizer, const RecordInput& input) {
  const Architecture& architecture = model.architecture();
  check(!architecture.patches, "record: a {} reads images; expected a model that reads text", architecture.family);
  const bool twice = reads_text_twice(architecture);
  const bool nothing_written = std::holds_alternative<std::monostate>(input.written);
  check(architecture.cross_attention || nothing_written,
        "record: a {} has no decoder behind an encoder; expected nothing that it has written", architecture.family);
  check(!twice || nothing_written, "record: a {} {} writes no text; expected nothing that it has written",
        architecture.family, name_of(architecture.head.kind));
  Encoded encoded = encoded_input(tokenizer, input, 0);
  check(!encoded.ids.empty(), "record: the text has no token; expected one or more");
  const int64_t longest = architecture.embedding ? architecture.embedding->max_positions : 0;
  Recording out{.cut = longest > 0 && static_cast<int64_t>(encoded.ids.size()) > longest};
  if (out.cut) encoded = encoded_input(tokenizer, input, longest);
  out.texts = {recorded_text("text", tokenizer, encoded, input)};
  ModelInputs inputs{.tokens = token_batch({encoded.ids})};
  if (architecture.embedding && architecture.embedding->types > 0)
    inputs.types = tensor<int32_t>(encoded.types, {static_cast<int64_t>(encoded.types.size())});
  if (twice) {
    add_second_reading(architecture, tokenizer, encoded, out.texts);
  } else if (architecture.cross_attention) {
    inputs.decoder = decoder_input(architecture, tokenizer, input, out.texts);
  }
  AttentionRecorder recorder;
  Pass pass = Pass::inference().watched_by(&recorder);
  model.forward(inputs, pass);
  out.layers = std::move(recorder.layers);
  return out;
}

}  // namespace mh
