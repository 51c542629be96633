// Several linear maps of the same rows: one product once their weights are laid out.
#pragma once

#include <vector>

#include "multihead/nn/linear.h"

namespace mh {

class LinearGroup {
 public:
  // The maps' inputs are of one width.
  explicit LinearGroup(std::vector<Linear> maps) : maps_(std::move(maps)) {}

  // Each map's result, (rows, out) in the type of x; views of one buffer where packed.
  std::vector<Tensor> operator()(const Tensor& x) const;
  // The results side by side: (rows, Σ out).
  Tensor joined(const Tensor& x) const;
  const Linear& operator[](size_t n) const { return maps_[n]; }

  // As Linear::pack: one matrix of all.
  void pack(DType compute);
  void unpack() { packed_ = {}; }

 private:
  bool runs_packed(const Tensor& x) const;
  Tensor product(const Tensor& x) const;
  std::vector<Linear> maps_;
  PackedWeights packed_;
  Tensor bias_;  // of all, where any has one
};

}  // namespace mh
