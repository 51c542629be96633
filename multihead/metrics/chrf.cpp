// chrF of a corpus.
#include "multihead/metrics/chrf.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/metrics/metric_corpus.h"
#include "multihead/metrics/metric_text.h"

namespace mh {

namespace {

constexpr int kLongestOrder = 100;

// n-grams of one order: how many there are on each side, and how many are in both.
struct Matches {
  int64_t ours = 0, theirs = 0, both = 0;
};

// A mark at the end of a word is a word of its own, else one at its beginning.
std::vector<std::u32string> words_and_marks(const std::u32string& line) {
  std::vector<std::u32string> out;
  for (const std::u32string& word : detail::split(line)) {
    size_t cut = 0;
    if (word.size() > 1 && detail::is_ascii_punctuation(word.back())) {
      cut = word.size() - 1;
    } else if (word.size() > 1 && detail::is_ascii_punctuation(word.front())) {
      cut = 1;
    }
    if (cut > 0) out.push_back(word.substr(0, cut));
    out.push_back(word.substr(cut));
  }
  return out;
}

// The n-grams of a sentence and how often they occur: orders of characters, then of words.
class Sentence {
 public:
  using Counts = std::unordered_map<std::u32string_view, int64_t>;

  Sentence(const std::string& text, const ChrfOptions& options) {
    const std::u32string line = detail::code_points(options.lower_case ? detail::lower_case(text) : text);
    count_characters(line, static_cast<size_t>(options.char_order));
    if (options.word_order > 0) count_words(line, static_cast<size_t>(options.word_order));
  }
  // The counts point into the texts.
  Sentence(const Sentence&) = delete;
  Sentence& operator=(const Sentence&) = delete;

  const std::vector<Counts>& orders() const { return orders_; }

 private:
  void count_characters(const std::u32string& line, size_t orders) {
    for (const char32_t c : line)
      if (!detail::is_space(c)) characters_ += c;
    const std::u32string_view all = characters_;
    for (size_t n = 1; n <= orders; ++n) {
      Counts& counts = orders_.emplace_back();
      for (size_t i = 0; i + n <= all.size(); ++i) ++counts[all.substr(i, n)];
    }
  }

  void count_words(const std::u32string& line, size_t orders) {
    std::vector<std::pair<size_t, size_t>> places;  // begin and end
    for (const std::u32string& word : words_and_marks(line)) {
      places.emplace_back(words_.size(), words_.size() + word.size());
      words_ += word + U' ';
    }
    const std::u32string_view all = words_;
    for (size_t n = 1; n <= orders; ++n) {
      Counts& counts = orders_.emplace_back();
      for (size_t i = 0; i + n <= places.size(); ++i)
        ++counts[all.substr(places[i].first, places[i + n - 1].second - places[i].first)];
    }
  }

  std::u32string characters_, words_;
  std::vector<Counts> orders_;
};

std::vector<Matches> compare(const Sentence& ours, const Sentence& theirs) {
  std::vector<Matches> out;
  for (size_t n = 0; n < ours.orders().size(); ++n) {
    Matches& matches = out.emplace_back();
    const Sentence::Counts& reference = theirs.orders()[n];
    for (const auto& [ngram, count] : reference) matches.theirs += count;
    if (reference.empty()) continue;  // an order the reference is too short for is not held against us
    for (const auto& [ngram, count] : ours.orders()[n]) {
      matches.ours += count;
      if (const auto found = reference.find(ngram); found != reference.end())
        matches.both += std::min(count, found->second);
    }
  }
  return out;
}

double f_score(const std::vector<Matches>& orders, double beta) {
  double precision = 0, recall = 0, counted = 0;
  for (const Matches& order : orders) {
    if (order.ours == 0 || order.theirs == 0) continue;
    precision += static_cast<double>(order.both) / static_cast<double>(order.ours);
    recall += static_cast<double>(order.both) / static_cast<double>(order.theirs);
    ++counted;
  }
  if (precision + recall == 0) return 0;
  precision /= counted;
  recall /= counted;
  const double factor = beta * beta;
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

}  // namespace

Chrf chrf(const std::vector<std::string>& hypotheses, const std::vector<std::vector<std::string>>& references,
          const ChrfOptions& options) {
  detail::check_corpus("chrf", hypotheses, references);
  check(options.char_order >= 1 && options.char_order <= kLongestOrder && options.word_order >= 0 &&
            options.word_order <= kLongestOrder,
        "chrf: orders {} of characters and {} of words; expected 1 to {} and 0 to {}", options.char_order,
        options.word_order, kLongestOrder, kLongestOrder);
  check(options.beta > 0, "chrf: beta is {}; expected more than 0", options.beta);

  std::vector<Matches> sum(static_cast<size_t>(options.char_order + options.word_order));
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const Sentence ours(hypotheses[i], options);
    std::vector<Matches> best;
    double best_score = -1;
    for (const std::string& text : references[i]) {
      std::vector<Matches> orders = compare(ours, Sentence(text, options));
      const double score = f_score(orders, options.beta);
      if (score <= best_score) continue;
      best_score = score;
      best = std::move(orders);
    }
    for (size_t n = 0; n < sum.size(); ++n) {
      sum[n].ours += best[n].ours;
      sum[n].theirs += best[n].theirs;
      sum[n].both += best[n].both;
    }
  }
  return {.score = f_score(sum, options.beta),
          .signature =
              fmt::format("{}|eff:yes|nc:{}|nw:{}|space:no|{}", detail::signature_start(references, options.lower_case),
                          options.char_order, options.word_order, detail::signature_end())};
}

}  // namespace mh
