// Lengths and repetition.
#include "multihead/generate/rules.h"

#include <algorithm>
#include <limits>

namespace mh::detail {

namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// Every token counts once, however often it was written.
void weaken_written(float penalty, std::vector<int32_t> written, float* logits) {
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  for (const int32_t token : written) {
    float& x = logits[token];
    x = x > 0 ? x / penalty : x * penalty;
  }
}

// Forbids the tokens that once followed what the last n - 1 tokens are.
void forbid_repeats(size_t n, const std::vector<int32_t>& written, float* logits) {
  if (written.size() < n) return;
  const auto tail = written.end() - static_cast<std::ptrdiff_t>(n - 1);
  for (auto at = written.begin(); at + static_cast<std::ptrdiff_t>(n) <= written.end(); ++at) {
    if (std::equal(tail, written.end(), at)) logits[at[static_cast<std::ptrdiff_t>(n - 1)]] = kForbidden;
  }
}

}  // namespace

bool changes_logits(const WritingRules& rules) {
  return rules.min_length > 0 || rules.repetition_penalty != 1 || rules.no_repeat_ngram > 0;
}

void apply_rules(const WritingRules& rules, const std::vector<int32_t>& written, int32_t end, float* logits) {
  if (rules.repetition_penalty != 1) weaken_written(rules.repetition_penalty, written, logits);
  if (rules.no_repeat_ngram > 0) forbid_repeats(static_cast<size_t>(rules.no_repeat_ngram), written, logits);
  if (static_cast<int64_t>(written.size()) < rules.min_length) logits[end] = kForbidden;
}

int64_t length_limit(const WritingRules& rules, int64_t source, int64_t model_limit) {
  const double by_source = rules.length_factor * static_cast<double>(source) + rules.length_offset;
  const int64_t asked = rules.max_length > 0 ? std::min(rules.max_length, model_limit) : model_limit;
  return by_source < static_cast<double>(asked) ? static_cast<int64_t>(by_source) : asked;
}

}  // namespace mh::detail
