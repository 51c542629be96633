// The small modules: parameters by name, and calls of the ops.
#include "multihead/nn/linear.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/rows/dropout.h"
#include "multihead/ops/rows/layer_norm.h"
#include "multihead/ops/shape.h"

namespace mh {

Linear::Linear(const Params& at, int64_t in, int64_t out, bool bias)
    : weight_(&at.make_stored("weight", {out, in}, Init::xavier())),
      bias_(bias ? &at.make("bias", {out}, Init::zeros()) : nullptr),
      part_{0, out, 0} {}

Tensor Linear::part(const Tensor& all, int64_t begin) const {
  return out() == all.size(0) ? all : slice(all, 0, begin, begin + out());
}

Tensor Linear::bias() const { return bias_ != nullptr ? part(bias_->value, part_.bias_begin) : Tensor(); }

Tensor Linear::copy(DType rows) const {
  const bool is_read = rows != DType::f32 && weight_->copy;
  return is_read ? weight_->copy.slice(0, part_.begin, part_.end) : Tensor();
}

// In f32 and dense: what stayed in a file need be neither, and is then read so at every call.
Tensor Linear::readable() const {
  const Tensor w = part(weight_->value, part_.begin);
  if (w.dtype() == DType::f32 && w.is_contiguous()) return w;
  return w.trace() == 0 ? w.to(DType::f32).contiguous() : w;
}

LinearWeights Linear::weights(DType rows) const { return {readable(), bias(), copy(rows)}; }

Tensor Linear::product(const Tensor& x, const LinearOptions& options) const {
  LinearOptions all = options;
  all.bias = bias();
  if (sparse_ && x.dtype() == DType::f32 && all.activation == Activation::none && all.dropout.p == 0 &&
      all.result.value_or(DType::f32) == DType::f32 && !recording({x, weight_->value, all.residual})) {
    return sparse_linear(x, sparse_, all.bias, all.residual);
  }
  if (packed_ && packed_.dtype() == x.dtype() && !recording({x, weight_->value, all.residual})) {
    return dropout(
        matmul(x, packed_,
               {.bias = all.bias, .residual = all.residual, .activation = all.activation, .result = all.result}),
        all.dropout);
  }
  all.copy = copy(x.dtype());
  return linear(x, readable(), all);
}

Tensor Linear::operator()(const Tensor& x, const Tail& tail) const {
  return product(x, {.activation = tail.activation, .dropout = tail.dropout, .result = tail.result});
}

Tensor Linear::operator()(const Tensor& x, const SublayerEnd& end, Pass& pass) const {
  return end_sublayer(end, pass, [&](const Tensor& residual) {
    return product(x, {.residual = residual, .result = end.residual.dtype()});
  });
}

void Linear::pack(DType compute) {
  sparse_ = {};
  packed_ = prepack(weight_->value.detach().slice(0, part_.begin, part_.end).to(compute).transpose(0, 1));
}

void Linear::pack_for_zeros() {
  packed_ = {};
  sparse_ = prepack_sparse(weight_->value.detach().slice(0, part_.begin, part_.end).to(DType::f32).contiguous());
}

Norm::Norm(const Params& at, int64_t width, const Options& options)
    : weight_(&at.make("weight", {width}, Init::ones())), options_(options) {
  if (!options.rms && options.bias) bias_ = &at.make("bias", {width}, Init::zeros());
}

Tensor Norm::operator()(const Tensor& x, std::optional<DType> result) const {
  if (options_.rms) return rms_norm(x, weight_->value, {.eps = options_.eps, .result = result});
  return layer_norm(x, weight_->value, bias_ != nullptr ? bias_->value : Tensor(),
                    {.eps = options_.eps, .result = result});
}

}  // namespace mh
