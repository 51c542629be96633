// Tokenizers: text to token ids and back, and the training of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/text_span.h"

namespace mh {

namespace detail {
struct TokenizerState;
}

// What is cut where a text, or two, are too long.
enum class Truncate { longest_first, only_first, only_second };

struct EncodeOptions {
  bool add_special = true;   // puts the special tokens of the file's post-processor around the text
  bool find_special = true;  // "[SEP]" in the text becomes the special token
  int64_t max_length = 0;    // of ids, special ones too; 0 is no limit
  Truncate truncate = Truncate::longest_first;
  int64_t stride = 0;  // of encode_windows: how many tokens a window has in common with the one before it
};

// Arrays of the same length, an entry for each token.
struct Encoded {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;     // 0 for the first text, 1 for the second where the file tells them apart
  std::vector<TextSpan> offsets;  // bytes of its text; both 0 for tokens that were put around the texts
  std::vector<int32_t> words;     // the number of the word in its text; -1 for those
  std::vector<int8_t> sequences;  // 0 for the first text, 1 for the second, -1 for those
};

// The same offsets counted in code points of `text`, as Python counts. Those of other texts stay as they are: say of
// which sequence `text` is.
void count_in_code_points(Encoded& encoded, std::string_view text, int8_t sequence = 0);

// A tokenizer that never changes: copies share it, and every method may be called from many threads at once.
//
// A file goes step by step through the normalisers, splitters and decoders that it names, with the ids of Hugging
// Face's `tokenizers`; docs/tokenizers.md lists them. What is not well-formed UTF-8 counts as U+FFFD there. The rest of
// this comment is about byte-level BPE as train_bpe makes it, which needs no such steps.
//
// How text becomes ids, as in GPT-2 and in Hugging Face's `ByteLevel`:
//   1. normalise (none, NFC or NFKC), then lower-case, if so trained;
//   2. put a space before it, if so trained (`prefix_space`), so that a word is the same token wherever it stands;
//   3. cut it into words: contractions ('s 't 're 've 'm 'll 'd), letters, digits, other characters, each with at most
//   one space
//      before it, and runs of white space;
//   4. merge the bytes of each word, the earliest learned pair first, the leftmost of equals first.
//
// Round trip: decode(encode(x)) == x for any bytes x, also for those that are not UTF-8, where no normaliser and no
// lower-casing is set. A byte that is no part of well-formed UTF-8 counts as one of the other characters in step 3 and
// passes through step 1 as it is. The space of step 2 is always added to text that is not empty, and decode takes one
// leading space away again; so "a" and " a" differ. (A file of Hugging Face's that says `add_prefix_space` adds none
// where there is one and takes none away: there decode(encode("a")) == " a", as Hugging Face's own.)
//
// Text is only ever text: "</s>" in it is encoded as the four characters it is, never as the token that ends a
// sentence. Hugging Face's `tokenizers` gives the same ids with `encode_special_tokens = True`. Letters, digits and
// white space are those of ICU's version of Unicode; characters that are in one version and not in another may be cut
// apart differently.
class Tokenizer {
 public:
  Tokenizer() = default;  // holds none: every method but operator bool throws

  // A `tokenizer.json` of Hugging Face's format, a folder that holds one or the files of an older format
  // (docs/tokenizers.md), or a SentencePiece model (.model, .spm). What would change ids and is not done here is
  // refused by name. The lengths that a file asks for are not applied: they are the caller's (EncodeOptions). Throws:
  // io where the file cannot be read; invalid_argument where it is no such file or contradicts itself; unsupported
  // where it asks for what is not done here.
  static Tokenizer load(const std::string& path);
  static Tokenizer parse(std::string_view json, const std::string& name);  // `name` stands in the errors

  // The file, byte for byte as Hugging Face's `tokenizers` would write it; as it was read where the model is not BPE.
  // `save` writes it durably (durable_file.h). Throws: io.
  std::string json() const;
  void save(const std::string& path) const;

  // Adds no special tokens. The second form appends.
  std::vector<int32_t> encode(std::string_view text) const;
  void encode(std::string_view text, std::vector<int32_t>& out) const;

  // As Hugging Face's `encode`: one text or two, special tokens in them and around them, offsets into the texts.
  // Throws: invalid_argument where max_length has no place for the special tokens, or what is to be cut is too short.
  Encoded encode_input(std::string_view text, const EncodeOptions& options = {}) const;
  Encoded encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;

  // What encode_input and encode_pair cut off comes in further windows of max_length, each `stride` tokens back into
  // the one before it: at least one window, and of two texts that are both cut every combination. Throws: as those;
  // also invalid_argument for a stride that is not smaller than what a window holds of the text.
  std::vector<Encoded> encode_windows(std::string_view text, const EncodeOptions& options = {}) const;
  std::vector<Encoded> encode_pair_windows(std::string_view first, std::string_view second,
                                           const EncodeOptions& options = {}) const;

  // Special tokens are skipped. Bytes come out as they went in: ids cut off amid a character give broken UTF-8.
  // Throws: invalid_argument for an id that is not in [0, size()).
  std::string decode(const int32_t* ids, size_t count) const;
  std::string decode(const std::vector<int32_t>& ids) const;

  // Tokens are spelled as in the file: each byte a printable character, the space "Ġ".
  int32_t size() const;
  std::optional<int32_t> id(std::string_view token) const;
  const std::string& token(int32_t id) const;  // Throws: invalid_argument for an id that is not in [0, size())
  bool is_special(int32_t id) const;           // likewise
  // Whether a token tells by its spelling if it begins a word: WordPiece and BPE with a mark for what goes on ("##"),
  // WordLevel.
  bool marks_words() const;

  explicit operator bool() const { return state_ != nullptr; }

  explicit Tokenizer(std::shared_ptr<const detail::TokenizerState> state) : state_(std::move(state)) {}

 private:
  const detail::TokenizerState& state(std::string_view op) const;

  std::shared_ptr<const detail::TokenizerState> state_;
};

enum class Normalisation { none, nfc, nfkc };

struct BpeOptions {
  int32_t vocabulary = 8000;  // tokens to end with: specials, 256 bytes, merges
  std::vector<std::string> specials{"<pad>", "<s>", "</s>", "<unk>"};
  bool prefix_space = true;
  bool lowercase = false;  // each character alone, as Hugging Face's `Lowercase`: a final Σ becomes σ
  Normalisation normalisation = Normalisation::none;
  int64_t min_frequency = 2;  // a pair seen less often is not merged
  std::function<void(int64_t done, int64_t total)> progress{};
};

// Learns merges from the words of `lines`, each line a text of its own: the most frequent pair first, of equals the one
// with the smaller ids. Specials get the first ids, in order; then come the bytes; then the merges. The vocabulary
// stays smaller than asked where no pair is left that was seen `min_frequency` times. The same lines in any order give
// the same tokenizer, and the one that Hugging Face's `BpeTrainer` gives, except that no merge ever spells a special
// token. Throws: invalid_argument for a vocabulary that does not hold specials and bytes, a special that is empty, not
// UTF-8, given twice or the character of a byte, a min_frequency below 1.
Tokenizer train_bpe(const std::vector<std::string>& lines, const BpeOptions& options = {});

}  // namespace mh
