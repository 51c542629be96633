// Cuts images into patches and brings them to the model's width.
#include "multihead/nn/patch_embedding.h"

#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/dropout.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

const PatchEmbeddingOptions& checked(const PatchEmbeddingOptions& o) {
  constexpr int64_t kMostPixels = 1 << 16, kMostChannels = 1 << 10;
  const auto in = [](int64_t value, int64_t most) { return value > 0 && value <= most; };
  check(in(o.height, kMostPixels) && in(o.width, kMostPixels) && in(o.channels, kMostChannels),
        "patches: an image of {} channels and {} x {} pixels; expected at most {} channels and {} pixels a side",
        o.channels, o.height, o.width, kMostChannels, kMostPixels);
  check(o.patch_height > 0 && o.patch_width > 0 && o.height % o.patch_height == 0 && o.width % o.patch_width == 0,
        "patches: {} x {} pixels do not fill an image of {} x {}; expected divisors", o.patch_height, o.patch_width,
        o.height, o.width);
  return o;
}

}  // namespace

PatchEmbedding::PatchEmbedding(const Params& at, const PatchEmbeddingOptions& o)
    : options_(checked(o)), patches_(at / "patches", o.channels * o.patch_height * o.patch_width, o.output, o.bias) {
  for (int64_t n = 0; n < o.extra; ++n)
    extra_.push_back(&(at / "extra").make(std::to_string(n), {1, o.output}, Init::normal(0.02)));
  positions_ = &at.make("positions", {o.rows(), o.output}, Init::normal(0.02));
  if (o.norm) norm_.emplace(at / "norm", o.output, *o.norm);
}

Tensor PatchEmbedding::operator()(const Tensor& pixels, Pass& pass) const {
  const PatchEmbeddingOptions& o = options_;
  check(pixels && pixels.dtype() == DType::f32 && pixels.rank() == 4 && pixels.size(1) == o.channels &&
            pixels.size(2) == o.height && pixels.size(3) == o.width,
        "patches: pixels are {} {}; expected f32 (B, {}, {}, {})", pixels ? name(pixels.dtype()) : "missing",
        pixels ? pixels.shape() : Shape{}, o.channels, o.height, o.width);
  const int64_t batch = pixels.size(0), down = o.height / o.patch_height, across = o.width / o.patch_width;
  const Tensor cut = reshape(pixels, {batch, o.channels, down, o.patch_height, across, o.patch_width});
  const Tensor by_patch = transpose(transpose(transpose(cut, 1, 2), 2, 4), 3, 4);  // (B, down, across, C, ph, pw)
  const Tensor flat = reshape(by_patch, {batch * o.patches(), o.channels * o.patch_height * o.patch_width});
  const Tensor rows =
      reshape(patches_(cast(flat, pass.compute()), {.result = DType::f32}), {batch, o.patches(), o.output});
  std::vector<Tensor> parts;
  for (const Param* extra : extra_)
    parts.push_back(broadcast_to(reshape(extra->value, {1, 1, o.output}), {batch, 1, o.output}));
  parts.push_back(rows);
  Tensor x = concat(parts, 1);
  x = add(x, reshape(positions_->value, {1, o.rows(), o.output}));
  x = reshape(x, {batch * o.rows(), o.output});
  if (norm_) x = (*norm_)(x);
  return dropout(x, pass.dropout(o.dropout));
}

void PatchEmbedding::pack(DType compute) { patches_.pack(compute); }

}  // namespace mh
