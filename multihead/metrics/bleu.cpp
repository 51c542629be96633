// BLEU of a corpus.
#include "multihead/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/metrics/metric_corpus.h"
#include "multihead/metrics/metric_text.h"

namespace mh {

namespace {

constexpr int kOrders = 4;

// Tokens by number, -1 behind the last.
using Ngram = std::array<int, kOrders>;
using Counts = std::map<Ngram, int64_t>;

int order_of(const Ngram& ngram) {
  return static_cast<int>(std::count_if(ngram.begin(), ngram.end(), [](int token) { return token >= 0; }));
}

// Sentences to n-grams; equal tokens have equal numbers.
class Reader {
 public:
  explicit Reader(const BleuOptions& options) : options_(options) {}

  struct Sentence {
    int64_t length = 0;
    Counts ngrams;
  };

  Sentence read(const std::string& text) {
    std::vector<int> numbers;
    for (std::u32string& token : tokens(text))
      numbers.push_back(numbers_.emplace(std::move(token), static_cast<int>(numbers_.size())).first->second);
    Sentence out{.length = static_cast<int64_t>(numbers.size()), .ngrams = {}};
    for (size_t begin = 0; begin < numbers.size(); ++begin) {
      Ngram ngram;
      ngram.fill(-1);
      for (size_t n = 0; n < kOrders && begin + n < numbers.size(); ++n) {
        ngram[n] = numbers[begin + n];
        ++out.ngrams[ngram];
      }
    }
    return out;
  }

 private:
  std::vector<std::u32string> tokens(const std::string& text) const {
    std::u32string line = detail::code_points(options_.lower_case ? detail::lower_case(text) : text);
    while (!line.empty() && detail::is_space(line.back())) line.pop_back();
    switch (options_.tokenizer) {
      case BleuTokenizer::v13a: return detail::tokens_13a(std::move(line));
      case BleuTokenizer::zh: return detail::tokens_zh(line);
      case BleuTokenizer::intl: return detail::tokens_intl(line);
      case BleuTokenizer::characters: return detail::tokens_char(line);
      case BleuTokenizer::none: return detail::split(line);
    }
    fail(ErrorKind::internal, "bleu: {} is not a tokenizer", static_cast<int>(options_.tokenizer));
  }

  const BleuOptions& options_;
  std::unordered_map<std::u32string, int> numbers_;
};

void add_sentence(Reader& reader, const std::string& hypothesis, const std::vector<std::string>& references,
                  Bleu& sum) {
  const Reader::Sentence ours = reader.read(hypothesis);
  Counts most;
  int64_t nearest = -1;
  for (const std::string& text : references) {
    const Reader::Sentence reference = reader.read(text);
    for (const auto& [ngram, count] : reference.ngrams) most[ngram] = std::max(most[ngram], count);
    const int64_t distance = std::abs(reference.length - ours.length), before = std::abs(nearest - ours.length);
    if (nearest < 0 || distance < before || (distance == before && reference.length < nearest))
      nearest = reference.length;
  }
  sum.hypothesis_length += ours.length;
  sum.reference_length += nearest;
  for (const auto& [ngram, count] : ours.ngrams) {
    const auto n = static_cast<size_t>(order_of(ngram) - 1);
    sum.totals[n] += count;
    if (const auto found = most.find(ngram); found != most.end()) sum.matches[n] += std::min(count, found->second);
  }
}

double smoothing_value(const BleuOptions& options) {
  return options.smoothing_value.value_or(options.smoothing == BleuSmoothing::floor ? 0.1 : 1.0);
}

// In percent; `halved` is 2^k for the k orders before this one that had no match.
double precision(double matches, double total, const BleuOptions& options, double& halved) {
  if (matches > 0) return 100 * matches / total;
  switch (options.smoothing) {
    case BleuSmoothing::exponential: halved *= 2; return 100 / (halved * total);
    case BleuSmoothing::floor: return 100 * smoothing_value(options) / total;
    default: return 0;
  }
}

void finish(Bleu& sum, const BleuOptions& options) {
  const auto ours = static_cast<double>(sum.hypothesis_length), theirs = static_cast<double>(sum.reference_length);
  sum.brevity_penalty = ours >= theirs ? 1 : ours > 0 ? std::exp(1 - theirs / ours) : 0;
  if (std::all_of(sum.matches.begin(), sum.matches.end(), [](int64_t n) { return n == 0; })) return;

  double halved = 1;
  size_t orders = kOrders;
  for (size_t n = 0; n < kOrders; ++n) {
    const double added = options.smoothing == BleuSmoothing::add_k && n > 0 ? smoothing_value(options) : 0;
    const double total = static_cast<double>(sum.totals[n]) + added;
    if (total == 0) break;
    if (options.effective_order) orders = n + 1;
    sum.precisions[n] = precision(static_cast<double>(sum.matches[n]) + added, total, options, halved);
  }
  double logs = 0;
  for (size_t n = 0; n < orders; ++n) logs += std::log(sum.precisions[n]);  // of 0: minus infinity, a score of 0
  sum.score = sum.brevity_penalty * std::exp(logs / static_cast<double>(orders));
}

std::string signature(const std::vector<std::vector<std::string>>& references, const BleuOptions& options) {
  static constexpr const char* kTokenizers[] = {"13a", "zh", "intl", "char", "none"};
  static constexpr const char* kSmoothings[] = {"exp", "floor", "add-k", "none"};
  const bool valued = options.smoothing == BleuSmoothing::floor || options.smoothing == BleuSmoothing::add_k;
  return fmt::format("{}|eff:{}|tok:{}|smooth:{}{}|{}", detail::signature_start(references, options.lower_case),
                     options.effective_order ? "yes" : "no", kTokenizers[static_cast<int>(options.tokenizer)],
                     kSmoothings[static_cast<int>(options.smoothing)],
                     valued ? fmt::format("[{:.2f}]", smoothing_value(options)) : "", detail::signature_end());
}

}  // namespace

Bleu bleu(const std::vector<std::string>& hypotheses, const std::vector<std::vector<std::string>>& references,
          const BleuOptions& options) {
  detail::check_corpus("bleu", hypotheses, references);
  Bleu sum;
  Reader reader(options);
  for (size_t i = 0; i < hypotheses.size(); ++i) add_sentence(reader, hypotheses[i], references[i], sum);
  finish(sum, options);
  sum.signature = signature(references, options);
  return sum;
}

}  // namespace mh
