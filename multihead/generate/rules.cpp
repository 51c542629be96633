// Lengths, repetition, words that are forbidden and tokens that are forced.
#include "multihead/generate/rules.h"

#include <algorithm>
#include <limits>

namespace mh::detail {

namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

using Ids = std::span<const int32_t>;

void forbid(int32_t token, std::span<float> logits) {
  if (token >= 0 && token < static_cast<int64_t>(logits.size())) logits[static_cast<size_t>(token)] = kForbidden;
}

void forbid_all(Ids tokens, std::span<float> logits) {
  for (const int32_t token : tokens) forbid(token, logits);
}

// Every token counts once, however often it was written.
void weaken_written(float penalty, Ids text, std::span<float> logits) {
  std::vector<int32_t> written(text.begin(), text.end());
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  for (const int32_t token : written) {
    if (token < 0 || token >= static_cast<int64_t>(logits.size())) continue;
    float& x = logits[static_cast<size_t>(token)];
    x = x > 0 ? x / penalty : x * penalty;
  }
}

// Forbids the tokens that somewhere in `seen` follow what the last n - 1 tokens of the text are.
void forbid_repeats(size_t n, Ids seen, Ids text, std::span<float> logits) {
  if (text.size() + 1 < n || seen.size() < n) return;
  const Ids tail = text.last(n - 1);
  for (size_t at = 0; at + n <= seen.size(); ++at) {
    if (std::equal(tail.begin(), tail.end(), seen.begin() + static_cast<std::ptrdiff_t>(at)))
      forbid(seen[at + n - 1], logits);
  }
}

void forbid_bad_words(const WritingRules& rules, const Place& at, std::span<float> logits) {
  for (const std::vector<int32_t>& word : rules.bad_words) {
    const bool is_end = word.size() == 1 && std::find(at.ends.begin(), at.ends.end(), word[0]) != at.ends.end();
    if (is_end || word.empty() || word.size() > at.text.size() + 1) continue;
    if (std::equal(word.begin(), word.end() - 1, at.text.last(word.size() - 1).begin())) forbid(word.back(), logits);
  }
}

// Nothing but these, as certain as can be.
void force(Ids tokens, std::span<float> logits) {
  std::fill(logits.begin(), logits.end(), kForbidden);
  for (const int32_t token : tokens) logits[static_cast<size_t>(token)] = 0;
}

}  // namespace

bool changes_logits(const WritingRules& rules) {
  return rules.min_length > 0 || rules.min_text > 0 || rules.repetition_penalty != 1 || rules.no_repeat_ngram > 0 ||
         rules.no_repeat_source_ngram > 0 || !rules.bad_words.empty() || rules.forced_begin >= 0 ||
         !rules.forced_ends.empty() || !rules.suppressed.empty() || !rules.begin_suppressed.empty();
}

void apply_rules(const WritingRules& rules, const Place& at, std::span<float> logits) {
  const auto length = static_cast<int64_t>(at.text.size());
  const Ids looked_at = rules.whole_text ? at.text : at.text.last(static_cast<size_t>(at.written));
  if (rules.repetition_penalty != 1) weaken_written(rules.repetition_penalty, looked_at, logits);
  if (rules.no_repeat_ngram > 0)
    forbid_repeats(static_cast<size_t>(rules.no_repeat_ngram), looked_at, looked_at, logits);
  if (rules.no_repeat_source_ngram > 0)
    forbid_repeats(static_cast<size_t>(rules.no_repeat_source_ngram), at.source, at.text, logits);
  forbid_bad_words(rules, at, logits);
  if (at.written < rules.min_length || length < rules.min_text) forbid_all(at.ends, logits);
  const bool forces_begin = rules.forced_begin >= 0;
  if (forces_begin && length == 1) force(Ids(&rules.forced_begin, 1), logits);
  if (!rules.forced_ends.empty() && at.written + 1 == at.limit) force(rules.forced_ends, logits);
  forbid_all(rules.suppressed, logits);
  const int64_t first = forces_begin && length - at.written <= 1 ? 1 : 0;
  if (at.written == first) forbid_all(rules.begin_suppressed, logits);
}

int64_t length_limit(const WritingRules& rules, int64_t source, int64_t model_limit) {
  const double by_source = rules.length_factor * static_cast<double>(source) + rules.length_offset;
  const int64_t asked = rules.max_length > 0 ? std::min(rules.max_length, model_limit) : model_limit;
  return by_source < static_cast<double>(asked) ? static_cast<int64_t>(by_source) : asked;
}

}  // namespace mh::detail
