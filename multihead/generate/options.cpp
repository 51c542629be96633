// The penalties' formulas, and what options may be.
#include "multihead/generate/options.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/generate/check_options.h"

namespace mh {

namespace {

double alpha_of(const LengthPenalty& penalty) {
  return std::visit([](const auto& kind) { return kind.alpha; }, penalty);
}

void check_rules(const char* op, const WritingRules& rules) {
  check(rules.max_length >= 0 && rules.min_length >= 0, "{}: max_length {} and min_length {}; expected 0 or more", op,
        rules.max_length, rules.min_length);
  check(rules.max_length == 0 || rules.min_length <= rules.max_length,
        "{}: min_length {} is above max_length {}; expected at most that many", op, rules.min_length, rules.max_length);
  check(
      rules.length_factor >= 0 && rules.length_factor <= 1e6 && rules.length_offset >= 1 && rules.length_offset <= 1e6,
      "{}: length_factor {} and length_offset {}; expected 0 to 1e6 and 1 to 1e6", op, rules.length_factor,
      rules.length_offset);
  check(rules.repetition_penalty > 0 && rules.repetition_penalty <= 1e3F,
        "{}: repetition_penalty {}; expected above 0, at most 1000", op, rules.repetition_penalty);
  check(rules.no_repeat_ngram >= 0 && rules.no_repeat_source_ngram >= 0,
        "{}: no_repeat_ngram {} and no_repeat_source_ngram {}; expected 0 or more", op, rules.no_repeat_ngram,
        rules.no_repeat_source_ngram);
  check(rules.max_text >= 0 && rules.min_text >= 0, "{}: max_text {} and min_text {}; expected 0 or more", op,
        rules.max_text, rules.min_text);
}

void check_batch(const char* op, const BatchOptions& batch) {
  check(batch.tokens >= 1, "{}: batches of {} tokens; expected 1 or more", op, batch.tokens);
  check(batch.compute == DType::f32 || batch.compute == DType::bf16, "{}: products in {}; expected f32 or bf16", op,
        name(batch.compute));
}

}  // namespace

double divisor(const LengthPenalty& penalty, int64_t length) {
  const double tokens = static_cast<double>(length), alpha = alpha_of(penalty);
  return std::pow(std::holds_alternative<GnmtPenalty>(penalty) ? (5 + tokens) / 6 : tokens, alpha);
}

namespace detail {

int64_t most_finished(const SearchOptions& o) { return std::llround(static_cast<double>(o.beam) * o.patience); }

void check_options(const SearchOptions& o) {
  const int64_t ends = std::max<int64_t>(1, static_cast<int64_t>(o.rules.ends.size()));
  check(o.beam >= 1 && o.beam + ends <= kMostBeam + 1, "search: a beam of {}; expected 1 to {}", o.beam,
        kMostBeam + 1 - ends);
  check(o.patience > 0 && o.patience <= 1e6 && most_finished(o) >= 1,
        "search: a patience of {}; expected one that lets a hypothesis finish, at most 1e6", o.patience);
  check(o.n_best >= 1 && o.n_best <= most_finished(o),
        "search: the {} best of a beam of {}, which finishes {}; expected no more than that, or a wider beam", o.n_best,
        o.beam, most_finished(o));
  check(o.stop == Stop::first || o.stop == Stop::full || o.n_best <= o.beam,
        "search: the {} best of a beam of {} that does not stop at the first; expected no more than the beam", o.n_best,
        o.beam);
  check(!o.on_token || o.beam == 1, "search: tokens are told one by one with a beam of {}; expected a beam of 1",
        o.beam);
  const double alpha = alpha_of(o.penalty);
  check(alpha >= -100 && alpha <= 100, "search: a length penalty with alpha {}; expected -100 to 100", alpha);
  check_rules("search", o.rules);
  check_batch("search", o.batch);
}

void check_options(const SamplingOptions& o) {
  check(o.samples >= 1 && o.samples <= kMostSamples, "sample: {} samples of a sentence; expected 1 to {}", o.samples,
        kMostSamples);
  check(!o.on_token || o.samples == 1, "sample: tokens are told one by one with {} samples; expected 1", o.samples);
  check(o.temperature > 0 && o.temperature <= 1e6F, "sample: a temperature of {}; expected above 0, at most 1e6",
        o.temperature);
  check(o.top_k >= 0, "sample: top_k {}; expected 0 or more", o.top_k);
  check(o.top_p > 0 && o.top_p <= 1, "sample: top_p {}; expected above 0, at most 1", o.top_p);
  check(o.min_p >= 0 && o.min_p <= 1, "sample: min_p {}; expected 0 to 1", o.min_p);
  check_rules("sample", o.rules);
  check_batch("sample", o.batch);
}

void fail_without_scores(const char* op) {
  fail(ErrorKind::invalid_argument,
       "{}: the model's scores are NaN, so it cannot choose a token: its training diverged or its file is damaged; "
       "expected finite weights ('multihead inspect' counts those that are not)",
       op);
}

}  // namespace detail
}  // namespace mh
