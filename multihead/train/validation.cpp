// Validation loss, and translations against their references.
#include "multihead/train/validation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/generate/search.h"
#include "multihead/metrics/bleu.h"
#include "multihead/metrics/chrf.h"

namespace mh {

namespace {

std::vector<int32_t> copied(std::span<const int32_t> ids) { return {ids.begin(), ids.end()}; }

double negative_log_likelihood(const Transformer& model, const Dataset& data, const ValidationOptions& options) {
  double sum = 0;
  int64_t tokens = 0;
  for (int64_t begin = 0; begin < data.size();) {
    std::vector<SentencePair> pairs;
    int64_t filled = 0, end = begin;
    while (end < data.size() &&
           (filled == 0 || filled + static_cast<int64_t>(data.target(end).size()) < options.tokens_per_batch)) {
      pairs.emplace_back(copied(data.source(end)), copied(data.target(end)));
      filled += static_cast<int64_t>(data.target(end).size()) + 1;
      ++end;
    }
    std::vector<const SentencePair*> batch;
    for (const SentencePair& pair : pairs) batch.push_back(&pair);
    Pass pass = Pass::inference(options.compute);
    const CrossEntropy entropy = model.loss(pair_batch(batch, model.config()), pass, 0);
    sum += entropy.nll.item({});
    tokens += entropy.counted;
    begin = end;
  }
  return sum / static_cast<double>(std::max<int64_t>(1, tokens));
}

}  // namespace

Validation validate(Transformer& model, const Tokenizer& tokenizer, const PairText& text, const Dataset& data,
                    const ValidationOptions& options) {
  model.pack(options.compute);
  Validation out;
  out.loss = negative_log_likelihood(model, data, options);
  out.perplexity = std::exp(out.loss);
  const int64_t count = std::min(options.sentences, data.size());
  if (count == 0 || !std::isfinite(out.loss)) return out;  // such a model has no most likely token

  std::vector<std::vector<int32_t>> sources;
  std::vector<std::vector<std::string>> references;
  for (int64_t n = 0; n < count; ++n) {
    sources.push_back(copied(data.source(n)));
    references.push_back({std::string(text.target(data.text_pair(n)))});
  }
  std::vector<std::string> hypotheses;
  try {
    for (const auto& found : search(model, sources, {.beam = 1, .batch = {.compute = options.compute}}))
      hypotheses.push_back(found.empty() ? "" : tokenizer.decode(found[0].ids));
  } catch (const Error& error) {
    // A run that is about to diverge may have a finite loss and scores that overflow: not scored, and no end of the
    // run.
    if (error.kind() != ErrorKind::invalid_argument) throw;
    return out;
  }
  out.bleu = bleu(hypotheses, references).score;
  out.chrf = chrf(hypotheses, references).score;
  return out;
}

}  // namespace mh
