// How sentences are written: beam search or sampling, lengths, repetition, batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "multihead/base/dtype.h"

namespace mh {

// Hypotheses of different lengths are compared by log p / divisor(length), length counting </s>.
struct PowerPenalty {  // length^alpha: 1 is the mean per token, 0 plain log p, below 0 shorter ones win
  double alpha = 1;
};
struct GnmtPenalty {  // ((5 + length) / 6)^alpha (Wu et al., 2016)
  double alpha = 0.6;
};
using LengthPenalty = std::variant<PowerPenalty, GnmtPenalty>;
double divisor(const LengthPenalty& penalty, int64_t length);

// What may be written, however it is chosen. "The text" is what stands before a token: the beginning of a translation
// or the prompt of a continuation, then what is written. What one rule forbids, only a forced token brings back. Ids
// outside the vocabulary have no effect, but for the forced ones.
struct WritingRules {
  // The most tokens, </s> counted: the smallest of max_length (0: the model's), the model's, and
  // factor · source tokens + offset, the source without </s>. A sentence that reaches it ends there, without </s>.
  int64_t max_length = 0;
  double length_factor = 2, length_offset = 12;
  int64_t min_length = 0;  // tokens that must stand before </s>; at most max_length, where that is not 0
  // Above 1: the logit x of a token that was already written becomes x / penalty where x > 0, else x · penalty
  // (Keskar et al., 2019).
  float repetition_penalty = 1;
  int64_t no_repeat_ngram = 0;  // n > 0: no n tokens in a row stand twice
  bool whole_text = false;      // the two above look at the whole text, not only at what is written

  int64_t max_text = 0, min_text = 0;  // as max_length and min_length, of the whole text; 0: none
  int64_t no_repeat_source_ngram = 0;  // n > 0: no n tokens in a row of the source, or of the prompt, are written
  std::vector<std::vector<int32_t>> bad_words{};  // what no text gets; a bad word that is one end alone is let through
  int32_t forced_begin = -1;                      // the second token of every text; -1: any
  std::vector<int32_t> forced_ends{};             // one of these is the last token of the longest length; empty: any
  std::vector<int32_t> suppressed{};              // never written …
  std::vector<int32_t> begin_suppressed{};        // … and not as the first token, or the first behind a forced one
  std::vector<int32_t> ends{};                    // tokens that end a text, in place of </s>; empty: the model's
};

struct BatchOptions {
  // Sentences are written together while their source tokens, times the hypotheses of each, stay within this.
  // Changes no result. More rows at a time read a model's weights less often, fewer stay in the second cache (model 256
  // wide, Zen 4, two threads: 1024 are a twentieth slower, 3072 no faster).
  int64_t tokens = 2048;
  DType compute = DType::f32;  // of the products: that of Transformer::pack
};

// When a sentence is done, besides when all its hypotheses reached the longest length:
//   first      once beam · patience of them are finished, or none that goes on can still beat the worst of the n_best
//   full       the same, but those that reach the longest length with the last of them count too: Hugging Face's
//              early_stopping = true
//   exact      only once none that goes on can still beat the worst of the n_best kept: early_stopping = "never"
//   heuristic  once `beam` are finished and the best that goes on would not beat the worst of them if it ended now,
//              although with a length penalty a longer one could: early_stopping = false
enum class Stop { first, full, exact, heuristic };

// What the rules change: logits, whose softmax follows; or their log-softmax, of which nothing follows, as in Hugging
// Face's beam search. A beam of 1 always has them on logits.
enum class RulesOn { logits, log_p };

// Hears of every token of a text but its end as soon as it is chosen, from the thread that writes it.
using OnToken = std::function<void(size_t source, int32_t token)>;

// Beam search. Of all extensions of a sentence's hypotheses by one token, those among the best `beam` that end with
// </s> are finished, and the best `beam` that do not end go on, until `stop` says that it is done. Equal scores: the
// one finished earlier, the better parent, the smaller token. beam = 1 is greedy, whatever `stop` is.
struct SearchOptions {
  int64_t beam = 4;    // beam and ends together: 2 to 64
  int64_t n_best = 1;  // at most beam · patience; with `exact` and `heuristic`, at most beam
  LengthPenalty penalty{};
  Stop stop = Stop::first;
  double patience = 1;  // Kasai et al., 2022; read by `first` and `full`
  RulesOn rules_on = RulesOn::logits;
  WritingRules rules{};
  // Leaves a sentence as soon as no result can change: with false the same results, later.
  bool early_stop = true;
  BatchOptions batch{};
  OnToken on_token{};  // only with beam = 1
};

// Draws tokens at random. In this order: logits / temperature; the top_k most probable; of these the fewest that
// together have top_p; of these the ones at least min_p times as probable as the best.
struct SamplingOptions {
  int64_t samples = 1;    // of every sentence
  float temperature = 1;  // above 0
  int64_t top_k = 0;      // 0: all
  double top_p = 1, min_p = 0;
  uint64_t seed = 1;
  // The number of the first sentence, for a text handed over in pieces: a draw depends on the seed, the number of the
  // sentence, of the sample and of the token, and on nothing else.
  uint64_t first_sentence = 0;
  std::vector<uint64_t> numbers{};  // those of all sentences, where they are not first_sentence and up
  WritingRules rules{};
  BatchOptions batch{};
  OnToken on_token{};  // only with samples = 1
};

struct Hypothesis {
  std::vector<int32_t> ids{};  // without special tokens at either end
  // Search: Σ token_scores / divisor. Sampling: Σ token_scores.
  double score = 0;
  std::vector<float> token_scores{};  // log p of every token, and of </s> where it ended
  bool ended = false;                 // with </s>, not cut off at the longest length
};

}  // namespace mh
