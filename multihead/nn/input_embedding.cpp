// Reads the tables of tokens, positions and types.
#include "multihead/nn/input_embedding.h"

#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/dropout.h"
#include "multihead/ops/rows/embedding.h"

namespace mh {

namespace {

using Options = InputEmbeddingOptions;

// Rows of a table of any float type, in f32; one that is not f32 carries no gradient.
Tensor rows_of(const Param& table, const Tensor& ids, EmbeddingOptions options = {}) {
  if (table.value.dtype() == DType::f16) {
    const Tensor rows = embedding(table.value, ids).to(DType::f32);
    return options.scale == 1 ? rows : scale(rows, options.scale);
  }
  options.result = DType::f32;
  return embedding(table.value, ids, options);
}

// i32 (rows): each number and `by`.
Tensor shifted(const Tensor& numbers, int64_t by) {
  if (by == 0) return numbers;
  const Tensor out = numbers.clone();
  int32_t* at = out.data<int32_t>();
  for (int64_t n = 0; n < out.count(); ++n) at[n] += static_cast<int32_t>(by);
  return out;
}

}  // namespace

InputEmbedding::InputEmbedding(const Params& at, const Options& options, const Param* shared) : options_(options) {
  check(options.vocabulary > 0 && options.width > 0, "embedding: vocabulary {} and width {}; expected both above 0",
        options.vocabulary, options.width);
  constexpr int64_t kMostSinusoids = int64_t{1} << 20;  // 4 GiB of a width of 1,024
  check(options.positions != Options::Positions::sinusoidal || options.max_positions <= kMostSinusoids,
        "embedding: sinusoids of {} positions; expected at most {}", options.max_positions, kMostSinusoids);
  const auto table = [&](std::string_view name, int64_t rows) {
    return &(at / name).make_stored("weight", {rows, options.width}, Init::normal(0.02));
  };
  tokens_ = shared != nullptr ? shared : table("tokens", options.vocabulary);
  if (options.positions == Options::Positions::learned)
    positions_ = table("positions", options.offset + options.max_positions);
  if (options.positions == Options::Positions::sinusoidal)
    sinusoids_ = sinusoidal_positions(options.offset + options.max_positions, options.width, options.sinusoids);
  if (options.types > 0) types_ = table("types", options.types);
  if (options.norm) norm_.emplace(at / "norm", options.width, *options.norm);
  if (const int64_t out = options.output > 0 ? options.output : options.width;
      options.projected || out != options.width)
    projection_.emplace(at / "projection", options.width, out);
}

Tensor InputEmbedding::operator()(const Tensor& ids, const Tensor& positions, const Tensor& types, Pass& pass) const {
  EmbeddingOptions tokens{.scale = options_.scale};
  const Tensor places = positions_ != nullptr || sinusoids_ ? shifted(positions, options_.offset) : Tensor();
  if (sinusoids_ && tokens_->value.dtype() != DType::f16) {
    tokens.positions = sinusoids_;
    tokens.position_ids = places;
  }
  Tensor x = rows_of(*tokens_, ids, tokens);
  if (sinusoids_ && !tokens.positions) x = add(x, embedding(sinusoids_, places));
  if (positions_ != nullptr) x = add(x, rows_of(*positions_, places));
  if (types_ != nullptr) x = add(x, rows_of(*types_, types ? types : zeros({ids.count()}, DType::i32)));
  if (norm_) x = (*norm_)(x);
  x = dropout(x, pass.dropout(options_.dropout));
  return projection_ ? (*projection_)(cast(x, pass.compute()), {.result = DType::f32}) : x;
}

void InputEmbedding::pack(DType compute) {
  if (projection_) projection_->pack(compute);
}

}  // namespace mh
