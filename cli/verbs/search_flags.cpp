// Flags, their words and their ranges.
#include "cli/verbs/search_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <optional>

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
  count("--max-length", rules.max_length,
        "most tokens of a translation; else 2 per source token + 12, and the model's");
  count("--min-length", rules.min_length, "fewest tokens of a translation (0)", 0);
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
  const WritingRules& rules = search.rules;
  if (rules.max_length > 0 && rules.min_length > rules.max_length)
    throw CLI::ValidationError("--min-length", fmt::format("{} is more than --max-length {}; expected at most that",
                                                           rules.min_length, rules.max_length));
}

}  // namespace mh::cli
