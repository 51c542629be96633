// A translator in a folder: text in, text out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/generate/generation_config.h"
#include "multihead/generate/options.h"
#include "multihead/nn/attention_observer.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// A sentence of a line, as one candidate translates it.
struct TranslatedSentence : Hypothesis {
  std::string space{};  // white space before the sentence; it stands before the translation too
  std::string source{}, text{};
  std::vector<int32_t> source_ids{};  // what of it the model read
};

// One way to translate a line. As a Hypothesis it is its sentences one behind the other: their ids, their token scores,
// the mean of their scores (of samples the sum), ended where all are.
struct Candidate : Hypothesis {
  std::string text{};
  std::vector<TranslatedSentence> sentences{};  // none for a line of white space
};

struct Translation {
  std::vector<Candidate> candidates{};  // best first; at least one
  int64_t source_tokens = 0;            // of the line, before any cut
  bool cut = false;                     // of a sentence only the beginning fitted the model and was translated

  const std::string& text() const { return candidates.front().text; }
};

// The language a text is in and the one it is wanted in, as the folder names them; empty: as the folder says.
struct LanguagePair {
  std::string from{}, to{};
  bool given() const { return !from.empty() || !to.empty(); }
};

struct TextOptions {
  // Lines are cut into sentences (text/sentences.h), which are translated each for itself and joined again with the
  // white space that stood between them. The n_best of a line are the best combinations of those of its sentences; its
  // samples join sample 1 with sample 1, 2 with 2. false: a line is one sentence, its white space and all.
  // Empty: lines of our own models are cut, those of Hugging Face's are not.
  std::optional<bool> split{};
  LanguagePair languages{};  // for models that know several
  std::string prefix{};      // stands before every sentence, as the model reads it
  int64_t max_source = 0;    // tokens that are read of a sentence; 0: as many as the model can
  // Hears of every line once, as soon as it is translated: in no order, from several threads at once.
  std::function<void(size_t line, const Translation& translation)> on_line{};
};

// The tokens of a sentence and of what was written for it.
struct SentenceTokens {
  std::vector<std::string> source{}, target{};          // as text, </s> last
  std::vector<int64_t> source_words{}, target_words{};  // of each token the word, counted by white space; -1: none
};

// What the decoder looked at in the source while it wrote a candidate.
struct CrossAttention : SentenceTokens {
  Tensor weights{};  // f32 (H, target, source), rows of sum 1
};

// Pairs (source word, target word), ordered: for every word of the target the word of the source that got the most
// attention, over all heads.
std::vector<std::pair<int64_t, int64_t>> align_words(const CrossAttention& attention);

// Copies share the model; every method may be called from many threads at once.
//
// Text is UTF-8: a line that is not is refused, and of a character that a model writes only in part nothing is kept. A
// line of white space alone is translated to an empty one.
class Translator {
 public:
  // A translator of our own (FOLDER/model.safetensors and FOLDER/tokenizer.json), or a Hugging Face folder with a
  // tokenizer whose model writes one text from another, whatever for: Marian, M2M-100, NLLB, mBART, T5, BART, Pegasus.
  // `compute`: the type of the products, f32 or bf16.
  // Throws: io, invalid_argument, unsupported; a sentence that names the file. Refused are, among others, a model whose
  // bytes differ from its hash and a tokenizer that is not the model's (load_translation_folder).
  static Translator load(const std::string& folder, DType compute = DType::f32);

  // How the folder wants a task done (load_text_tasks): of one that it does not name, as any text. Our own models: a
  // beam of 4.
  const TextTask& defaults(std::string_view task = {}) const;
  // The task that is named after the languages ("translation_en_to_de", T5); "": none is.
  std::string task_of(const LanguagePair& languages) const;
  // That the tokens of the model stand for, in order of the alphabet; none for a model of one pair.
  std::vector<std::string> languages() const;

  // In the order of the lines; options.batch.compute is not read. A draw of `sample` depends on the seed, the number of
  // the line (options.first_sentence is that of the first), of the sentence in it, of the sample and of the token.
  // Of a Hugging Face model the ids are those of transformers' generate() where the options are the folder's defaults.
  // Throws: as search; invalid_argument for a line that is not UTF-8, and for a language that the model does not know.
  std::vector<Translation> translate(const std::vector<std::string>& lines, const SearchOptions& options,
                                     const TextOptions& text = {}) const;
  std::vector<Translation> sample(const std::vector<std::string>& lines, const SamplingOptions& options,
                                  const TextOptions& text = {}) const;
  // The one or the other, as `how` says.
  std::vector<Translation> write(const std::vector<std::string>& lines, const GenerationConfig& how,
                                 const TextOptions& text = {}) const;
  // As the folder wants it.
  std::vector<Translation> translate(const std::vector<std::string>& lines) const;
  std::string operator()(const std::string& line) const;

  // Of one sentence and one decoder layer, counted from 0. Throws: invalid_argument where there is no such layer.
  CrossAttention cross_attention(const std::string& source, const Hypothesis& written, int64_t layer) const;
  // The same of a sentence as it was read, with its languages and its prefix.
  CrossAttention cross_attention(const TranslatedSentence& sentence, int64_t layer) const;
  // Runs the model once over a sentence and what was written for it: `observer` hears of every call of attention, those
  // of the encoder first. The decoder reads <s> and the target without its </s>. Throws: invalid_argument where the
  // target is longer than the model writes.
  SentenceTokens reread(const std::string& source, const Hypothesis& written, AttentionObserver& observer) const;
  // The same of ids, of which the source must fit the model too: for a model of our own without special tokens, for one
  // of Hugging Face's with them.
  SentenceTokens reread(std::vector<int32_t> source, const Hypothesis& written, AttentionObserver& observer) const;
  // align_words of all sentences of a candidate; words are counted through the line. Throws: alike.
  std::vector<std::pair<int64_t, int64_t>> align(const Candidate& candidate, int64_t layer) const;
  int64_t decoder_layers() const;  // that look at the source; 0: the model was trained without attention
  int64_t heads() const;

 private:
  struct Parts;
  class Lines;
  explicit Translator(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
