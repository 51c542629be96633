// Stacked recurrent layers over ragged batches, with the parameters of torch.nn.RNN, LSTM and GRU.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/nn/linear.h"
#include "multihead/nn/sequences.h"
#include "multihead/ops/recurrent.h"

namespace mh {

// Which way a layer reads. `both` runs two cells and puts their rows side by side, the forward one first.
enum class Reading : uint8_t { forward, backward, both };

struct RecurrentNetOptions {
  Cell cell = Cell::lstm;
  int64_t input = 0, width = 0;  // of the rows that come in; of the state of one direction
  int64_t layers = 1;
  Reading reading = Reading::forward;
  float dropout = 0;  // of what a layer hands to the next, in training

  int64_t directions() const { return reading == Reading::both ? 2 : 1; }
};

// Parameters weight_ih_l0 (G · H, input), weight_hh_l0 (G · H, H), bias_ih_l0 and bias_hh_l0 (G · H), then those of the
// direction back with _reverse behind, then layer 1; fresh ones uniform in ±1/√H, as torch.nn has them. (A net that
// only reads backwards has the names of one that reads forwards.)
class RecurrentNet {
 public:
  // Throws: invalid_argument where a size is below 1.
  RecurrentNet(const Params& at, const RecurrentNetOptions& options);

  struct Result {
    Tensor rows{};                      // f32 (rows, directions · H) of the last layer
    std::vector<RecurrentState> end{};  // of every layer and direction, as torch orders them
  };
  // x (rows, input), f32 or bf16; products run in pass.compute(), sums and states are f32. `start` is what another call
  // gave as `end`, for the same sequences; 0 where empty. Throws: as `recurrent`.
  Result operator()(const Tensor& x, const Sequences& at, Pass& pass,
                    const std::vector<RecurrentState>& start = {}) const;

  // Lays the weights out once for inference in `compute`. To be called again after they change.
  void pack(DType compute);
  const RecurrentNetOptions& options() const { return options_; }

 private:
  struct Direction {
    Linear inputs;
    const Param* w;
    const Param* bias;
    bool backward;
    PackedWeights packed{};
  };
  RecurrentResult run(const Direction& direction, const Tensor& x, const Sequences& at, Pass& pass,
                      const RecurrentState& start) const;
  RecurrentNetOptions options_;
  std::vector<Direction> directions_;  // of every layer
};

}  // namespace mh
