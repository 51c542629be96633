// ROUGE of a summary.
#include "multihead/metrics/rouge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/metrics/metric_text.h"
#include "multihead/metrics/porter_stem.h"

namespace mh {

namespace {

constexpr size_t kShortestStemmed = 4;

using Tokens = std::vector<std::string>;

bool is_plain(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

Tokens plain_tokens(std::string_view text, const RougeOptions& options) {
  const std::string line = detail::lower_case(text);
  Tokens out;
  for (auto at = line.begin();;) {
    const auto begin = std::find_if(at, line.end(), is_plain);
    if (begin == line.end()) return out;
    at = std::find_if_not(begin, line.end(), is_plain);
    std::string word(begin, at);
    if (options.stem && word.size() >= kShortestStemmed) word = detail::porter_stem(std::move(word));
    if (!word.empty()) out.push_back(std::move(word));
  }
}

std::vector<Tokens> line_tokens(std::string_view text, const RougeOptions& options) {
  std::vector<Tokens> out;
  while (true) {
    const size_t end = text.find('\n');
    out.push_back(plain_tokens(text.substr(0, end), options));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

RougeScore score_of(int64_t matches, size_t prediction, size_t target) {
  if (prediction == 0 || target == 0) return {};
  RougeScore out{.precision = static_cast<double>(matches) / static_cast<double>(prediction),
                 .recall = static_cast<double>(matches) / static_cast<double>(target)};
  if (matches > 0) out.f1 = 2 * out.precision * out.recall / (out.precision + out.recall);
  return out;
}

RougeScore score_runs(const Tokens& prediction, const Tokens& target, size_t n) {
  const auto count = [n](const Tokens& tokens) { return tokens.size() < n ? 0 : tokens.size() - n + 1; };
  const auto run = [n](const Tokens& tokens, size_t i) {
    return Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens.begin() + static_cast<std::ptrdiff_t>(i + n));
  };
  std::map<Tokens, int64_t> left;
  for (size_t i = 0; i < count(target); ++i) ++left[run(target, i)];
  int64_t matches = 0;
  for (size_t i = 0; i < count(prediction); ++i) {
    const auto found = left.find(run(prediction, i));
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++matches;
  }
  return score_of(matches, count(prediction), count(target));
}

// lengths(i, j): the longest common subsequence of the first i words of one side and the first j of the other.
class CommonSubsequence {
 public:
  CommonSubsequence(const Tokens& target, const Tokens& prediction)
      : target_(target),
        prediction_(prediction),
        columns_(prediction.size() + 1),
        lengths_((target.size() + 1) * columns_) {
    for (size_t i = 1; i <= target.size(); ++i)
      for (size_t j = 1; j <= prediction.size(); ++j)
        lengths_[i * columns_ + j] = target[i - 1] == prediction[j - 1] ? length(i - 1, j - 1) + 1
                                                                        : std::max(length(i - 1, j), length(i, j - 1));
  }

  // Marks the target's words that are in it. Of several as long, the one that rouge-score reads out.
  void mark(std::vector<bool>& words) const {
    for (size_t i = target_.size(), j = prediction_.size(); i > 0 && j > 0;) {
      if (target_[i - 1] == prediction_[j - 1]) {
        words[--i] = true;
        --j;
      } else if (length(i, j - 1) > length(i - 1, j)) {
        --j;
      } else {
        --i;
      }
    }
  }

 private:
  int32_t length(size_t i, size_t j) const { return lengths_[i * columns_ + j]; }

  const Tokens& target_;
  const Tokens& prediction_;
  size_t columns_;
  std::vector<int32_t> lengths_;
};

// Two rows of the table above: whole texts can be long.
int64_t common_length(const Tokens& target, const Tokens& prediction) {
  std::vector<int64_t> row(prediction.size() + 1);
  for (const std::string& word : target) {
    int64_t diagonal = 0;
    for (size_t j = 1; j <= prediction.size(); ++j) {
      const int64_t above = row[j];
      row[j] = word == prediction[j - 1] ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

RougeScore score_lines(const std::vector<Tokens>& prediction, const std::vector<Tokens>& target) {
  std::map<std::string_view, int64_t> ours, theirs;
  size_t our_words = 0, their_words = 0;
  for (const Tokens& line : prediction) {
    our_words += line.size();
    for (const std::string& word : line) ++ours[word];
  }
  for (const Tokens& line : target) {
    their_words += line.size();
    for (const std::string& word : line) ++theirs[word];
  }
  int64_t matches = 0;
  for (const Tokens& line : target) {
    std::vector<bool> marked(line.size());
    for (const Tokens& other : prediction) CommonSubsequence(line, other).mark(marked);
    for (size_t i = 0; i < line.size(); ++i) {
      if (!marked[i] || ours[line[i]] == 0 || theirs[line[i]] == 0) continue;
      --ours[line[i]];
      --theirs[line[i]];
      ++matches;
    }
  }
  return score_of(matches, our_words, their_words);
}

void keep_better(RougeScore& best, const RougeScore& score) {
  if (score.f1 > best.f1) best = score;
}

}  // namespace

Rouge rouge(const std::string& prediction, const std::vector<std::string>& targets, const RougeOptions& options) {
  check(!targets.empty(), "rouge: no target; expected at least 1");
  const Tokens ours = plain_tokens(prediction, options);
  const std::vector<Tokens> our_lines = line_tokens(prediction, options);
  Rouge best;
  for (const std::string& target : targets) {
    const Tokens theirs = plain_tokens(target, options);
    keep_better(best.rouge1, score_runs(ours, theirs, 1));
    keep_better(best.rouge2, score_runs(ours, theirs, 2));
    keep_better(best.rouge_l, score_of(common_length(theirs, ours), ours.size(), theirs.size()));
    keep_better(best.rouge_lsum, score_lines(our_lines, line_tokens(target, options)));
  }
  return best;
}

}  // namespace mh
