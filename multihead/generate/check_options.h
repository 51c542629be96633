// What options may be, and what a model must give.
#pragma once

#include "multihead/generate/options.h"

namespace mh::detail {

inline constexpr int64_t kMostBeam = 63;  // with one end; top_k finds 64 tokens: the beam and the ends
inline constexpr int64_t kMostSamples = 1024;

// Hypotheses that must be finished before a sentence is done.
int64_t most_finished(const SearchOptions& options);

// Throws: invalid_argument, a sentence with the option.
void check_options(const SearchOptions& options);
void check_options(const SamplingOptions& options);

// Throws: invalid_argument, naming `op`: the model has no score for any token.
[[noreturn]] void fail_without_scores(const char* op);

}  // namespace mh::detail
