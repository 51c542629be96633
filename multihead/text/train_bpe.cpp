// The training of byte-level BPE: pair counts kept up to date merge by merge.
#include <algorithm>
#include <limits>
#include <queue>
#include <string>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/models/byte_alphabet.h"
#include "multihead/text/pipeline/read/json_fields.h"
#include "multihead/text/tokenizer_state.h"
#include "multihead/text/unicode/utf8.h"
#include "multihead/text/words.h"

namespace mh {
namespace detail {
namespace {

constexpr int64_t kBytes = 256;

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using WordCounts = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

WordCounts count_words(const std::vector<std::string>& lines, const TokenizerSpec& spec) {
  WordCounts counts;
  std::string buffer;
  for (const std::string& line : lines) {
    const std::string_view text = prepare(spec, line, buffer);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = word_end(text, begin);
      const std::string_view word = text.substr(begin, end - begin);
      const auto found = counts.find(word);
      found == counts.end() ? void(counts.emplace(word, 1)) : void(++found->second);
      begin = end;
    }
  }
  return counts;
}

// The words seen in training and the pairs of neighbours in them.
class Corpus {
 public:
  Corpus(const WordCounts& counts, const std::array<int32_t, 256>& bytes) {
    for (const auto& [text, count] : counts) {
      if (text.size() < 2) continue;
      Word word{{}, count};
      for (const char byte : text) word.tokens.push_back(bytes[static_cast<uint8_t>(byte)]);
      words_.push_back(std::move(word));
    }
    for (size_t i = 0; i < words_.size(); ++i) {
      const std::vector<int32_t>& tokens = words_[i].tokens;
      for (size_t k = 0; k + 1 < tokens.size(); ++k) change({tokens[k], tokens[k + 1]}, words_[i].count, i);
    }
    for (size_t i = 0; i < pairs_.size(); ++i) queue_.push({pairs_[i].count, pairs_[i].pair});
  }

  struct Best {
    int64_t count = 0;
    Pair pair;
    // Below another in the queue: rarer, or as frequent with larger ids.
    bool operator<(const Best& other) const {
      if (count != other.count) return count < other.count;
      if (pair.left != other.pair.left) return pair.left > other.pair.left;
      return pair.right > other.pair.right;
    }
  };

  // The most frequent pair, taken from the queue; count 0 where none is left. A count in the queue is never too small:
  // it is put right when it comes up, and comes up again in its place.
  Best take_best() {
    while (!queue_.empty()) {
      Best best = queue_.top();
      queue_.pop();
      const int64_t count = pairs_[*index_.find(best.pair)].count;
      if (count == best.count) return best;
      best.count = count;
      if (count > 0) queue_.push(best);
    }
    return {};
  }

  // Puts `result` in every place of `pair`.
  void merge(Pair pair, int32_t result) {
    PairCount& merged = pairs_[*index_.find(pair)];
    const std::vector<uint32_t> places = std::move(merged.words);
    merged.words.clear();
    grown_.clear();
    for (const uint32_t at : places) merge_in(at, pair, result);
    pairs_[*index_.find(pair)].count = 0;
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const uint32_t at : grown_)
      if (pairs_[at].count > 0) queue_.push({pairs_[at].count, pairs_[at].pair});
  }

 private:
  struct Word {
    std::vector<int32_t> tokens;
    int64_t count;
  };
  struct PairCount {
    Pair pair;
    int64_t count = 0;
    std::vector<uint32_t> words;  // every word that has the pair, and some that had it
  };

  uint32_t change(Pair pair, int64_t by, size_t word) {
    const uint32_t at = index_.insert(pair, static_cast<uint32_t>(pairs_.size()));
    if (at == pairs_.size()) pairs_.push_back({pair, 0, {}});
    pairs_[at].count += by;
    std::vector<uint32_t>& words = pairs_[at].words;
    if (by > 0 && (words.empty() || words.back() != word)) words.push_back(static_cast<uint32_t>(word));
    return at;
  }

  void merge_in(uint32_t at, Pair pair, int32_t result) {
    std::vector<int32_t>& tokens = words_[at].tokens;
    const int64_t count = words_[at].count;
    size_t kept = 0;  // tokens before it are done, those from `i` on are not
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] != pair.left || i + 1 == tokens.size() || tokens[i + 1] != pair.right) {
        tokens[kept++] = tokens[i];
        continue;
      }
      if (kept > 0) {
        change({tokens[kept - 1], pair.left}, -count, at);
        grown_.push_back(change({tokens[kept - 1], result}, count, at));
      }
      if (i + 2 < tokens.size()) {
        change({pair.right, tokens[i + 2]}, -count, at);
        grown_.push_back(change({result, tokens[i + 2]}, count, at));
      }
      tokens[kept++] = result;
      ++i;
    }
    tokens.resize(kept);
  }

  std::vector<Word> words_;
  std::vector<PairCount> pairs_;
  PairMap<uint32_t> index_;  // into pairs_
  std::priority_queue<Best> queue_;
  std::vector<uint32_t> grown_;  // pairs that became more frequent in the merge under way
};

void check_options(const BpeOptions& options) {
  const auto least = kBytes + static_cast<int64_t>(options.specials.size());
  check(options.vocabulary >= least,
        "train_bpe: a vocabulary of {} does not hold {} special tokens and {} bytes; expected {} or more",
        options.vocabulary, options.specials.size(), kBytes, least);
  check(options.min_frequency >= 1, "train_bpe: min_frequency is {}; expected 1 or more", options.min_frequency);
  for (size_t i = 0; i < options.specials.size(); ++i) {
    const std::string& special = options.specials[i];
    check(!special.empty() && !utf8_error(special), "train_bpe: the special token {} is empty or not UTF-8",
          in_quotes(special));
    check(std::find(options.specials.begin(), options.specials.begin() + static_cast<std::ptrdiff_t>(i), special) ==
              options.specials.begin() + static_cast<std::ptrdiff_t>(i),
          "train_bpe: the special token {} is given twice", in_quotes(special));
  }
}

TokenizerSpec without_merges(const BpeOptions& options) {
  TokenizerSpec spec;
  spec.normalisation = options.normalisation;
  spec.lowercase = options.lowercase;
  spec.prefix = options.prefix_space ? PrefixSpace::always : PrefixSpace::none;
  spec.strip_space = options.prefix_space;
  spec.tokens = options.specials;
  spec.special.assign(spec.tokens.size(), true);
  for (const uint8_t byte : bytes_by_character()) spec.tokens.push_back(byte_characters()[byte]);
  spec.special.resize(spec.tokens.size(), false);
  return spec;
}

void learn_merges(Corpus& corpus, const BpeOptions& options, TokenizerSpec& spec) {
  std::unordered_map<std::string, int32_t> ids;
  for (size_t i = 0; i < spec.tokens.size(); ++i) ids.emplace(spec.tokens[i], static_cast<int32_t>(i));
  PairMap<bool> listed;
  const auto first = static_cast<int64_t>(spec.tokens.size());
  const int64_t total = options.vocabulary - first;
  const auto done = [&] { return static_cast<int64_t>(spec.tokens.size()) - first; };
  while (done() < total) {
    const Corpus::Best best = corpus.take_best();
    if (best.count < options.min_frequency) break;
    std::string token =
        spec.tokens[static_cast<size_t>(best.pair.left)] + spec.tokens[static_cast<size_t>(best.pair.right)];
    const auto [found, fresh] = ids.emplace(token, static_cast<int32_t>(spec.tokens.size()));
    const int32_t result = found->second;
    if (spec.special.size() > static_cast<size_t>(result) && spec.special[static_cast<size_t>(result)]) continue;
    if (fresh) {
      spec.tokens.push_back(std::move(token));
      spec.special.push_back(false);
    }
    bool& known = listed.insert(best.pair, false);
    if (!known) spec.merges.push_back({best.pair, result});
    known = true;
    corpus.merge(best.pair, result);
    if (options.progress) options.progress(done(), total);
  }
}

}  // namespace
}  // namespace detail

Tokenizer train_bpe(const std::vector<std::string>& lines, const BpeOptions& options) {
  detail::check_options(options);
  detail::TokenizerSpec spec = detail::without_merges(options);
  // Also the check that no special token stands for a byte.
  const detail::TokenizerState bytes(spec, "train_bpe");
  std::array<int32_t, 256> tokens{};
  for (size_t byte = 0; byte < tokens.size(); ++byte) tokens[byte] = bytes.ids.at(detail::byte_characters()[byte]);
  detail::Corpus corpus(detail::count_words(lines, spec), tokens);
  detail::learn_merges(corpus, options, spec);
  return Tokenizer(std::make_shared<const detail::TokenizerState>(std::move(spec), "train_bpe"));
}

}  // namespace mh
