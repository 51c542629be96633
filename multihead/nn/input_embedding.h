// From token ids to the rows a stack reads: tokens, positions and types, normalised and brought to the model's width.
#pragma once

#include <cstdint>
#include <optional>

#include "multihead/nn/linear.h"
#include "multihead/nn/positions.h"

namespace mh {

struct InputEmbeddingOptions {
  enum class Positions { none, learned, sinusoidal };

  int64_t vocabulary = 0, width = 0;
  int64_t output = 0;      // the model's width; another than `width` takes a projection; 0: `width`
  bool projected = false;  // a projection even where the widths are equal
  int64_t types = 0;       // rows of the table of token types; 0: none
  Positions positions = Positions::none;
  int64_t max_positions = 0;  // the longest sequence; 0: any, where no table limits it
  int64_t offset = 0;         // a learned table's or the sinusoids' row of position 0
  SinusoidLayout sinusoids = SinusoidLayout::neighbours;
  float scale = 1;  // of the tokens' rows
  std::optional<Norm::Options> norm{};
  float dropout = 0;
};

// x = project(dropout(norm(scale · tokens[id] + positions[offset + p] + types[t]))), f32 (rows, output). Parameters:
// tokens.weight (V, width), positions.weight (offset + max_positions, width) where learned, types.weight, norm.…,
// projection.….
class InputEmbedding {
 public:
  // Throws: invalid_argument where sizes do not fit.
  // `shared`: the table of tokens of another embedding, read in place of one of its own.
  InputEmbedding(const Params& at, const InputEmbeddingOptions& options, const Param* shared = nullptr);

  // ids, positions and types i32 (rows); types empty: all 0. Throws: invalid_argument for an id, a position or a type
  // outside its table.
  Tensor operator()(const Tensor& ids, const Tensor& positions, const Tensor& types, Pass& pass) const;
  const Param& tokens() const { return *tokens_; }
  void pack(DType compute);
  const InputEmbeddingOptions& options() const { return options_; }

 private:
  InputEmbeddingOptions options_;
  const Param* tokens_;
  const Param *positions_ = nullptr, *types_ = nullptr;
  Tensor sinusoids_;
  std::optional<Norm> norm_;
  std::optional<Linear> projection_;
};

}  // namespace mh
