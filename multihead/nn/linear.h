// A learned linear map, and a normalisation: the two small modules every block is made of.
#pragma once

#include <optional>

#include "multihead/nn/params.h"
#include "multihead/nn/pass.h"
#include "multihead/ops/products/linear.h"
#include "multihead/ops/products/sparse_linear.h"

namespace mh {

// What a sublayer ends with: residual + dropout(y), where a residual is given.
struct SublayerEnd {
  Tensor residual{};
  float dropout = 0;
};

// residual + dropout(product(Tensor())), or product(residual) where nothing is dropped.
template <class Product>
Tensor end_sublayer(const SublayerEnd& end, Pass& pass, Product&& product) {
  const DropoutOptions drop = pass.dropout(end.dropout);
  return drop.p > 0 ? dropout_add(product(Tensor()), end.residual, drop) : product(end.residual);
}

// y = x · wᵀ + bias; weight (out, in) and bias (out), as torch.nn.Linear names and stores them.
class Linear {
 public:
  Linear(const Params& at, int64_t in, int64_t out, bool bias = true);
  // Rows [begin, end) of a matrix that others share, and as many of its bias (which may be null) from bias_begin on.
  struct Part {
    int64_t begin, end, bias_begin;
  };
  Linear(const Param& weight, const Param* bias, const Part& part) : weight_(&weight), bias_(bias), part_(part) {}

  struct Tail {
    Activation activation = Activation::none;
    std::optional<DType> result{};  // the type of x where not given
    DropoutOptions dropout{};
  };
  Tensor operator()(const Tensor& x, const Tail& tail) const;
  Tensor operator()(const Tensor& x) const { return (*this)(x, Tail{}); }
  // residual + dropout(y), f32.
  Tensor operator()(const Tensor& x, const SublayerEnd& end, Pass& pass) const;

  // What an op on rows of this type reads, with its traces.
  LinearWeights weights(DType rows) const;
  // The same as they are stored: in the file's type where they stayed there.
  LinearWeights stored() const { return {part(weight_->value, part_.begin), bias()}; }

  // Lays the weights out once for inference in `compute`; undone by unpack. Changed weights need a new pack.
  void pack(DType compute);
  // The same in f32 for inputs that are mostly zeros, as relu makes them.
  void pack_for_zeros();
  void unpack() {
    packed_ = {};
    sparse_ = {};
  }

  int64_t in() const { return weight_->value.size(1); }
  int64_t out() const { return part_.end - part_.begin; }
  bool has_bias() const { return bias_ != nullptr; }

 private:
  Tensor part(const Tensor& all, int64_t begin) const;
  Tensor readable() const;
  Tensor bias() const;
  Tensor copy(DType rows) const;
  Tensor product(const Tensor& x, const LinearOptions& options) const;
  const Param* weight_;
  const Param* bias_;
  Part part_;
  PackedWeights packed_;
  SparseWeights sparse_;
};

// (x - mean) / √(variance + eps) · weight + bias over the last axis; rms: x / √(mean of squares + eps) · weight.
class Norm {
 public:
  struct Options {
    bool rms = false;
    float eps = 1e-5F;
    bool bias = true;  // of the norm that has one: not rms
  };
  Norm(const Params& at, int64_t width, const Options& options);
  Norm(const Params& at, int64_t width) : Norm(at, width, Options{}) {}
  // `result`: the type of y, that of x where not given.
  Tensor operator()(const Tensor& x, std::optional<DType> result = {}) const;

 private:
  const Param* weight_;
  const Param* bias_ = nullptr;
  Options options_;
};

}  // namespace mh
