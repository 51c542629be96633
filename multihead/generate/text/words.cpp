// Words of tokens, and their alignment.
#include "multihead/generate/text/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "multihead/generate/text/translator.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

// White space as byte-level tokens spell it: the bytes 9 to 13 and 32 are the characters U+0109 to U+010D and U+0120;
// and as SentencePiece's do.
bool is_spelled_space(std::string_view character) {
  return character == "Ġ" || character == "\xe2\x96\x81" ||
         (character >= "ĉ" && character <= "č" && character.size() == 2);
}

size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

namespace detail {

std::vector<int64_t> words_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<int64_t> words;
  int64_t word = -1;
  bool inside = false;
  for (const int32_t id : ids) {
    int64_t own = -1;
    const std::string_view spelled =
        id >= tokenizer.size() || tokenizer.is_special(id) ? "" : std::string_view(tokenizer.token(id));
    for (size_t at = 0, bytes = 0; at < spelled.size(); at += bytes) {
      bytes = character_bytes(spelled[at]);
      const bool space = is_spelled_space(spelled.substr(at, bytes));
      if (!space && !inside) ++word;
      if (!space) own = word;
      inside = !space;
    }
    words.push_back(own);
  }
  return words;
}

int64_t word_count(const std::vector<int64_t>& words) {
  return words.empty() ? 0 : *std::max_element(words.begin(), words.end()) + 1;
}

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  if (id >= tokenizer.size()) return fmt::format("<{}>", id);
  if (tokenizer.is_special(id)) return tokenizer.token(id);
  const std::string text = tokenizer.decode({id});
  if (!utf8_error(text)) return text;
  std::string bytes;
  for (const char byte : text) bytes += fmt::format("\\x{:02X}", static_cast<unsigned char>(byte));
  return bytes;
}

}  // namespace detail

std::vector<std::pair<int64_t, int64_t>> align_words(const CrossAttention& attention) {
  const int64_t sources = detail::word_count(attention.source_words);
  const int64_t targets = detail::word_count(attention.target_words);
  std::vector<std::pair<int64_t, int64_t>> pairs;
  if (sources == 0) return pairs;
  std::vector<std::vector<double>> received(static_cast<size_t>(targets),
                                            std::vector<double>(static_cast<size_t>(sources)));
  for (int64_t t = 0; t < attention.weights.size(1); ++t) {
    const int64_t j = attention.target_words[static_cast<size_t>(t)];
    for (int64_t s = 0; j >= 0 && s < attention.weights.size(2); ++s) {
      const int64_t i = attention.source_words[static_cast<size_t>(s)];
      for (int64_t h = 0; i >= 0 && h < attention.weights.size(0); ++h)
        received[static_cast<size_t>(j)][static_cast<size_t>(i)] += attention.weights.item({h, t, s});
    }
  }
  for (int64_t j = 0; j < targets; ++j) {
    const std::vector<double>& row = received[static_cast<size_t>(j)];
    pairs.emplace_back(std::max_element(row.begin(), row.end()) - row.begin(), j);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace mh
