// The small modules: parameters by name, and calls of the ops.
#include "multihead/nn/linear.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/dropout.h"
#include "multihead/ops/layer_norm.h"
#include "multihead/ops/shape.h"

namespace mh {

Linear::Linear(const Params& at, int64_t in, int64_t out, bool bias)
    : weight_(&at.make("weight", {out, in}, Init::xavier())),
      bias_(bias ? &at.make("bias", {out}, Init::zeros()) : nullptr),
      part_{0, out, 0} {}

Tensor Linear::product(const Tensor& x, const LinearOptions& options) const {
  const auto part = [&](const Tensor& t, int64_t begin) {
    return out() == t.size(0) ? t : slice(t, 0, begin, begin + out());
  };
  LinearOptions all = options;
  if (bias_ != nullptr) all.bias = part(bias_->value, part_.bias_begin);
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
  if (x.dtype() != DType::f32 && weight_->copy) all.copy = weight_->copy.slice(0, part_.begin, part_.end);
  return linear(x, part(weight_->value, part_.begin), all);
}

Tensor Linear::operator()(const Tensor& x, const Tail& tail) const {
  return product(x, {.activation = tail.activation,
                     .dropout = tail.dropout,
                     .result = tail.result,
                     .relu_by_reader = tail.relu_by_reader});
}

Tensor Linear::operator()(const Tensor& x, const SublayerEnd& end, Pass& pass) const {
  const DropoutOptions drop = pass.dropout(end.dropout);
  LinearOptions options{.result = end.residual.dtype(), .relu_before = end.relu_before};
  if (drop.p > 0) return dropout_add(product(x, options), end.residual, drop);
  options.residual = end.residual;
  return product(x, options);
}

void Linear::pack(DType compute) {
  sparse_ = {};
  packed_ = prepack(weight_->value.detach().slice(0, part_.begin, part_.end).to(compute).transpose(0, 1));
}

void Linear::pack_for_zeros() {
  packed_ = {};
  sparse_ = prepack_sparse(weight_->value.detach().slice(0, part_.begin, part_.end));
}

Norm::Norm(const Params& at, int64_t width, const Options& options)
    : weight_(&at.make("weight", {width}, Init::ones())), options_(options) {
  if (!options.rms) bias_ = &at.make("bias", {width}, Init::zeros());
}

Tensor Norm::operator()(const Tensor& x, std::optional<DType> result) const {
  if (options_.rms) return rms_norm(x, weight_->value, {.eps = options_.eps, .result = result});
  return layer_norm(x, weight_->value, bias_->value, {.eps = options_.eps, .result = result});
}

}  // namespace mh
