// Checks, and the choice between integers and f32 throughout.
#include "multihead/ops/products/linear_top_k.h"

#include <algorithm>
#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/ops/products/matmul.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

// Sums of products of more 16-bit integers than this could pass 31 bits.
constexpr int64_t kMostDepth = 16384;

bool all_finite(const Tensor& weights) {
  const Tensor w = weights.to(Device{});
  const float* data = w.data<float>();
  for (int64_t n = 0; n < w.count(); ++n) {
    if (!std::isfinite(data[n])) return false;
  }
  return true;
}

}  // namespace

TopKWeights prepack_top_k(const Tensor& w) {
  check(w.rank() == 2, "prepack_top_k: w has rank {}; expected 2, (V, C); w is {}", w.rank(), w.shape());
  if (w.dtype() != DType::f32)
    fail(ErrorKind::unsupported, "prepack_top_k: w has elements of type {}; expected f32", name(w.dtype()));
  refuse_traced("prepack_top_k", {w});

  TopKWeights packed;
  packed.w_ = w.detach().contiguous();
  if (w.size(1) > kMostDepth || !all_finite(packed.w_)) return packed;
  int64_t bytes = 0;
  run(&Table::linear_top_k_pack, {.w = packed.w_.view(), .bytes = &bytes}, w);
  packed.words_ = empty_on(w, Shape{bytes}, DType::u8);
  packed.rung_ = kernels::kernels_of(w.device()).rung;
  run(&Table::linear_top_k_pack, {.w = packed.w_.view(), .packed = packed.words_.view().data}, w);
  return packed;
}

TopK linear_top_k(const Tensor& x, const TopKWeights& w, int64_t k) {
  check(static_cast<bool>(w), "linear_top_k: w holds no weights; expected what prepack_top_k made");
  const Tensor& plain = w.w_;
  check(x.rank() == 2 && x.size(1) == plain.size(1),
        "linear_top_k: the rows of x do not fit w; expected (R, {}); x is {}, w is {}", plain.size(1), x.shape(),
        plain.shape());
  if (x.dtype() != DType::f32)
    fail(ErrorKind::unsupported, "linear_top_k: x has elements of type {}; expected f32", name(x.dtype()));
  if (!w.words_) {
    const TopK chosen = top_k(matmul(x.detach(), plain.transpose(0, 1)), k);
    return {refuse_gradient("linear_top_k", chosen.values, {x}), chosen.indices};
  }
  const int64_t most = std::min(plain.size(0), kernels::kMostTop);
  check(k >= 1 && k <= most, "linear_top_k: k is {}; expected 1 to {}; w is {}", k, most, plain.shape());
  detail::check_devices("linear_top_k", {&x, &plain});
  const std::string_view rung = kernels::kernels_of(x.device()).rung;
  check(w.rung_ == rung, "linear_top_k: w was packed on the rung {}; expected {}, the one in use; w is {}", w.rung_,
        rung, plain.shape());

  const TopK out{empty_on(x, {x.size(0), k}), empty_on(x, {x.size(0), k}, DType::i32)};
  const Tensor rows = x.stride(1) == 1 ? x : x.contiguous();
  run(&Table::linear_top_k,
      {.x = rows.view(),
       .w = plain.view(),
       .packed = w.words_.view().data,
       .k = k,
       .values = out.values.view().as<float>(),
       .indices = out.indices.view().as<int32_t>()},
      x);
  return {refuse_gradient("linear_top_k", out.values, {x}), out.indices};
}

}  // namespace mh
