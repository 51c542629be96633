// BLEU of a corpus, equal to sacreBLEU's (2.6).
//
//   BLEU = BP · exp(1/4 Σ log p_n),   p_n: the share of n-grams that a reference has too, n = 1..4, in percent
//   BP   = min(1, exp(1 - reference length / hypothesis length))
//
// An n-gram counts at most as often as in the reference that has it most often; of several references' lengths the one
// nearest the hypothesis's counts, of two as near the shorter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mh {

// v13a: as WMT does, the default.  zh: every Chinese character a token.  intl: by the categories of Unicode.
// characters: each a token.  none: split at white space.
enum class BleuTokenizer { v13a, zh, intl, characters, none };

// What an order without a match counts: 1/(2^k total) for the k-th such order (exponential), value/total (floor),
// value added above and below from the second order on (add_k), 0 (none).
enum class BleuSmoothing { exponential, floor, add_k, none };

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::v13a;
  BleuSmoothing smoothing = BleuSmoothing::exponential;
  std::optional<double> smoothing_value{};  // unset: 0.1 for floor, 1 for add_k
  bool lower_case = false;
  // Average over the orders the hypothesis is long enough for. For single sentences.
  bool effective_order = false;
};

struct Bleu {
  double score = 0;                    // 0 to 100
  std::array<int64_t, 4> matches{};    // n-grams that a reference has too
  std::array<int64_t, 4> totals{};     // n-grams
  std::array<double, 4> precisions{};  // in percent, smoothed
  double brevity_penalty = 1;
  int64_t hypothesis_length = 0, reference_length = 0;  // in tokens
  // What was computed: "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:multihead-…". All but the version is as
  // sacreBLEU writes it.
  std::string signature;
};

// references[i] are those of hypotheses[i], at least one; their number may differ. Broken UTF-8 is read as U+FFFD.
// Throws: invalid_argument where there is no sentence, or one without reference.
Bleu bleu(const std::vector<std::string>& hypotheses, const std::vector<std::vector<std::string>>& references,
          const BleuOptions& options = {});

}  // namespace mh
