// Writes texts with any Generator: beam search and sampling, many prompts at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "multihead/generate/generator.h"
#include "multihead/generate/models/model_generators.h"
#include "multihead/generate/options.h"

namespace mh {

// Hears of every source once, as soon as it is written: with its number and its hypotheses, from the thread that wrote
// it, in no order and from several threads at once.
using OnWritten = std::function<void(size_t source, const std::vector<Hypothesis>& hypotheses)>;

// The n_best hypotheses of every source (ids without special tokens), best first, in the order of the sources. Fewer
// where fewer were finished. Sources are sorted by length and written in batches; sentences that are done leave theirs.
// The same bits for any batch and number of threads.
// Throws: invalid_argument where an option is outside its range, or a source is longer than the model reads or holds an
// id outside its vocabulary, before anything is written; internal where the model gives NaN for every token.
std::vector<std::vector<Hypothesis>> search(const Generator& model, const Prompts& sources,
                                            const SearchOptions& options = {}, const OnWritten& on_written = {});

// Samples of every source, in the order drawn. Throws: alike.
std::vector<std::vector<Hypothesis>> sample(const Generator& model, const Prompts& sources,
                                            const SamplingOptions& options = {}, const OnWritten& on_written = {});

// The same of a model, through its Generator.
std::vector<std::vector<Hypothesis>> search(const Transformer& model, const Prompts& sources,
                                            const SearchOptions& options = {}, const OnWritten& on_written = {});
std::vector<std::vector<Hypothesis>> search(const DecoderOnly& model, const Prompts& prompts,
                                            const SearchOptions& options = {}, const OnWritten& on_written = {});
std::vector<std::vector<Hypothesis>> sample(const Transformer& model, const Prompts& sources,
                                            const SamplingOptions& options = {}, const OnWritten& on_written = {});
std::vector<std::vector<Hypothesis>> sample(const DecoderOnly& model, const Prompts& prompts,
                                            const SamplingOptions& options = {}, const OnWritten& on_written = {});

}  // namespace mh
