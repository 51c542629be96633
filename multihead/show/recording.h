// What a model's attention looked at in one forward pass: weights, statistics and rollout, made when asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "multihead/generate/text/translator.h"
#include "multihead/models/decoder_only.h"
#include "multihead/nn/attention_observer.h"
#include "multihead/text/tokenizer.h"

namespace mh {

enum class AttentionKind {
  encoder,
  decoder,
  cross
};  // self-attention over all, causal self-attention, cross-attention

// One call of attention over one sequence of queries and one of keys. It keeps q, k and lse: O(tokens) per head.
struct RecordedLayer {
  AttentionKind kind = AttentionKind::encoder;
  int64_t layer = 0;  // among those of its kind, from 0
  AttentionCall call{};
  AttentionOptions options{};

  int64_t heads() const { return call.q.size(1); }
  int64_t queries() const { return call.q.size(0); }
  int64_t keys() const { return call.k.size(0); }
  // Exact: f32 (heads, rows, keys); empty lists mean all. Throws: invalid_argument for a head or row that does not
  // exist.
  Tensor weights(const std::vector<int32_t>& heads = {}, const std::vector<int32_t>& rows = {}) const;
  // entropy and distance (heads, queries), received (heads, keys), top_keys and top_weights (heads, queries, top).
  AttentionStatistics statistics(int top = 1) const;
};

// Keeps every call of a forward pass over one sequence (and what cross-attention reads): any stack of any model, by
// `Pass::inference().watched_by(&recorder)`. What the layers compute stays as it is.
class AttentionRecorder final : public AttentionObserver {
 public:
  // Throws: invalid_argument for a batch of several sequences.
  Tensor attended(const AttendedCall& call) override;
  std::vector<RecordedLayer> layers{};

 private:
  int64_t seen_[3] = {};
};

struct RecordedText {
  std::string name{};                 // "source", "read", "written", "text"
  std::vector<std::string> tokens{};  // whole UTF-8
  std::vector<int64_t> words{};       // of each token the word, from 0; -1: none
};

// What is read, and what a decoder behind an encoder has written: nothing, a text, or ids without its first token.
struct RecordInput {
  std::string text{};
  std::optional<std::string> pair{};  // the second text of a model that reads two
  std::variant<std::monostate, std::string, std::vector<int32_t>> written{};
};

struct Recording {
  std::vector<RecordedLayer> layers{};
  // Of a translator source, read (<s> and the target: queries and keys of the decoder's self-attention) and written
  // (the target and </s>: row t of decoder and cross is that of the step that wrote token t). Else one text.
  std::vector<RecordedText> texts{};
  bool cut = false;  // the text was longer than the model reads: this is its beginning

  std::vector<const RecordedLayer*> of(AttentionKind kind) const;
  // Attention rollout (Abnar and Zuidema, 2020) of self-attention: R₀ = I, Rₙ = (½ Āₙ + ½ I) · Rₙ₋₁ with Āₙ the mean
  // over layer n's heads. f32 (layers, tokens, tokens): row i of Rₙ is how much of each token of the input is in token
  // i after layer n; rows sum to 1. Empty where there is no layer. Throws: invalid_argument for cross.
  Tensor rollout(AttentionKind kind) const;
};

// One forward pass of the model, in its own type; of a text that is longer than a language model reads, the beginning.
// Throws: as Translator::reread; invalid_argument for an empty text.
Recording record(const Translator& translator, const std::string& source, const Hypothesis& written);
// The same of a sentence as it was read, with its languages and its prefix.
Recording record(const Translator& translator, const TranslatedSentence& sentence);
Recording record(const DecoderOnly& model, const Tokenizer& tokenizer, const std::string& text);

}  // namespace mh
