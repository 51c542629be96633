// The beam of one sentence: which hypotheses go on, which are finished, and when nothing can change any more.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/generate/token_tree.h"

namespace mh::detail {

// A hypothesis that goes on.
struct Live {
  int32_t parent;  // its place among those of the step before
  int32_t token;   // its last
  int32_t node;
  double sum;  // log p
};

class Beam {
 public:
  // `limit`: the most tokens, an end counted. The options and the ends outlive the beam.
  Beam(const SearchOptions& options, int64_t limit, const std::vector<int32_t>& ends);

  // Best first; none when the sentence is done.
  const std::vector<Live>& live() const { return live_; }
  const TokenTree& tree() const { return tree_; }

  // One token further: for the n-th live hypothesis its k best tokens are tokens[n · k …], best first, with their
  // log p. k is beam + ends, or the whole vocabulary where that is less. An index of -1 is none.
  void advance(const float* log_p, const int32_t* tokens, int64_t k);

  // The n_best, best first.
  std::vector<Hypothesis> results() const;

 private:
  struct Candidate {
    double sum;
    int32_t parent, token;
    float log_p;
  };
  struct Finished {
    double score;
    int32_t node;
  };
  void gather(const float* log_p, const int32_t* tokens, int64_t k);
  void keep(double sum, int32_t node);
  bool is_done() const;
  bool is_settled() const;

  const SearchOptions& options_;
  int64_t limit_, length_ = 0;
  const std::vector<int32_t>& ends_;
  size_t room_;  // of kept_
  int64_t finished_ = 0;
  TokenTree tree_;
  std::vector<Live> live_, next_;
  std::vector<Finished> kept_;  // the best of the finished, best first
  std::vector<Candidate> candidates_;
};

}  // namespace mh::detail
