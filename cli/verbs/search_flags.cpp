// Flags, their words and their ranges.
#include "cli/verbs/search_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "cli/threads_flag.h"
#include "cli/values.h"

namespace mh::cli {

namespace {

constexpr double kLargestAlpha = 100;
constexpr int64_t kLargestBeam = 63;

LengthPenalty penalty_of(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::optional<double> alpha = colon == std::string::npos ? std::nullopt : read_number(text.substr(colon + 1));
  const bool whole = colon == std::string::npos || (alpha && *alpha >= 0 && *alpha <= kLargestAlpha);
  if (whole && kind == "power") return PowerPenalty{alpha.value_or(PowerPenalty{}.alpha)};
  if (whole && kind == "gnmt") return GnmtPenalty{alpha.value_or(GnmtPenalty{}.alpha)};
  throw CLI::ValidationError(
      "--length-penalty", fmt::format("'{}' does not fit; expected power[:ALPHA] or gnmt[:ALPHA], ALPHA from 0 to {}",
                                      text, kLargestAlpha));
}

}  // namespace

void SearchFlags::add_to(CLI::App& verb) {
  verb_ = &verb;
  WritingRules& rules = search.rules;
  const auto count = [&](const char* flag, auto& place, const char* about, int64_t low = 1,
                         int64_t high = std::numeric_limits<int64_t>::max()) {
    verb.add_option(flag, place, about)->type_name("N")->check(whole_number(low, high));
  };
  count("--beam", search.beam, "hypotheses kept while searching (4); 1 is greedy and fastest", 1, kLargestBeam);
  verb.add_option("--length-penalty", penalty,
                  "what log p is divided by: power[:ALPHA] (length^ALPHA; power:1) or gnmt[:ALPHA]; ALPHA 0 to 100")
      ->type_name("KIND");
  verb.add_option("--patience", search.patience, "search on until patience times beam hypotheses are finished (1)")
      ->type_name("X")
      ->check(number_above(0, 1e6));
  verb.add_option("--stop", stop,
                  "when a beam is done: its first hypotheses are (of our own models), nothing can win any more, or as "
                  "Hugging Face guesses")
      ->type_name("KIND")
      ->check(one_of({"first", "exact", "hf"}));
  count("--max-length", rules.max_length, "most tokens of a text; else 2 per source token + 12, and the model's");
  count("--min-length", rules.min_length, "fewest tokens of a text (0)", 0);
  verb.add_option("--repetition-penalty", rules.repetition_penalty,
                  "above 1: words already written become less likely (1)")
      ->type_name("X")
      ->check(number_above(0, 1000));
  count("--no-repeat", rules.no_repeat_ngram, "no N tokens in a row stand twice (0: they may)", 0);
  count("--batch", search.batch.tokens, "tokens translated together (2048); changes no result");
  verb.add_option("--precision", precision, "of the products (f32); bf16 is faster with AMX or AVX512_BF16")
      ->type_name("TYPE")
      ->check(one_of({"f32", "bf16"}));
  add_threads_flag(verb);
}

void SearchFlags::settle() {
  search.penalty = penalty_of(penalty);
  search.stop = stop == "hf" ? Stop::heuristic : stop == "exact" ? Stop::exact : Stop::first;
  const WritingRules& rules = search.rules;
  if (rules.max_length > 0 && rules.min_length > rules.max_length)
    throw CLI::ValidationError("--min-length", fmt::format("{} is more than --max-length {}; expected at most that",
                                                           rules.min_length, rules.max_length));
}

bool SearchFlags::given(const char* flag) const { return verb_ != nullptr && verb_->count(flag) > 0; }

SearchOptions SearchFlags::over(SearchOptions folder) const {
  if (given("--beam")) folder.beam = search.beam;
  if (given("--length-penalty")) folder.penalty = search.penalty;
  if (given("--patience")) folder.patience = search.patience;
  if (given("--stop")) folder.stop = search.stop;
  folder.n_best = search.n_best;
  folder.batch = search.batch;
  folder.rules = over(std::move(folder.rules));
  return folder;
}

WritingRules SearchFlags::over(WritingRules folder) const {
  const WritingRules& rules = search.rules;
  if (given("--max-length")) {
    folder.max_length = rules.max_length;
    folder.max_text = 0;
    folder.min_length = std::min(folder.min_length, rules.max_length);
  }
  if (given("--min-length")) folder.min_length = rules.min_length;
  if (given("--repetition-penalty")) folder.repetition_penalty = rules.repetition_penalty;
  if (given("--no-repeat")) folder.no_repeat_ngram = rules.no_repeat_ngram;
  return folder;
}

void SamplingFlags::add_to(CLI::App& verb) {
  verb_ = &verb;
  CLI::Option* draws =
      verb.add_flag("--sample", sample, "draw words at random instead of searching; the flags below say how");
  for (const char* searching : {"--beam", "--length-penalty", "--patience", "--stop"})
    draws->excludes(verb.get_option(searching));
  const auto flag = [&](const char* name, auto& place, const char* about, const char* type,
                        const CLI::Validator& fits) {
    verb.add_option(name, place, about)->type_name(type)->check(fits)->needs(draws);
  };
  flag("--temperature", sampling.temperature, "below 1 bolder choices are rarer, above 1 likelier (1)", "X",
       number_above(0, 1e6));
  flag("--top-k", sampling.top_k, "draw from the N most probable words only (0: all)", "N", whole_number(0));
  flag("--top-p", sampling.top_p, "draw from the fewest words that have this probability together (1)", "P",
       number_above(0, 1));
  flag("--min-p", sampling.min_p, "leave out words less than P times as probable as the best (0)", "P", number(0, 1));
  flag("--seed", sampling.seed, "of the draws (1); the same seed gives the same words", "N", whole_number(0));
}

SamplingOptions SamplingFlags::over(SamplingOptions folder) const {
  const auto given = [&](const char* flag) { return verb_ != nullptr && verb_->count(flag) > 0; };
  if (given("--temperature")) folder.temperature = sampling.temperature;
  if (given("--top-k")) folder.top_k = sampling.top_k;
  if (given("--top-p")) folder.top_p = sampling.top_p;
  if (given("--min-p")) folder.min_p = sampling.min_p;
  if (given("--seed")) folder.seed = sampling.seed;
  return folder;
}

}  // namespace mh::cli
