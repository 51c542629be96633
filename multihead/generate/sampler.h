// The samples of one sentence.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/generate/beam.h"

namespace mh::detail {

// A token of a row of logits by a number u in [0, 1), and its log p among all tokens at temperature 1.
struct Drawn {
  int32_t token;
  float log_p;
};
// Throws: internal where the logits hold a NaN or allow no token.
Drawn draw(const SamplingOptions& options, const float* logits, int64_t vocabulary, double u);

class Sampler {
 public:
  // `sentence`: its number in the text. The options and the ends outlive the sampler.
  Sampler(const SamplingOptions& options, uint64_t sentence, int64_t limit, const std::vector<int32_t>& ends);

  const std::vector<Live>& live() const { return live_; }
  const TokenTree& tree() const { return tree_; }
  // One token further; row n of the logits (…, vocabulary) is that of the n-th live sample.
  void advance(const float* logits, int64_t vocabulary);
  std::vector<Hypothesis> results() const;

 private:
  const SamplingOptions& options_;
  uint64_t sentence_;
  int64_t limit_, length_ = 0;
  const std::vector<int32_t>& ends_;
  TokenTree tree_;
  std::vector<Live> live_, next_;
  std::vector<int64_t> samples_, next_samples_;  // which sample each live one is
  std::vector<int32_t> stopped_;                 // by sample: its last node
};

}  // namespace mh::detail
