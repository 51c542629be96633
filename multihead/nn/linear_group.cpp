// Lays several matrices out as one, and cuts the product's columns apart again.
#include "multihead/nn/linear_group.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/shape.h"

namespace mh {

bool LinearGroup::runs_packed(const Tensor& x) const {
  if (!packed_ || packed_.dtype() != x.dtype()) return false;
  std::vector<Tensor> inputs{x};
  for (const Linear& map : maps_) inputs.push_back(map.weights(DType::f32).w);
  return !recording(inputs);
}

Tensor LinearGroup::product(const Tensor& x) const { return matmul(x, packed_, {.bias = bias_}); }

std::vector<Tensor> LinearGroup::operator()(const Tensor& x) const {
  std::vector<Tensor> out;
  if (runs_packed(x)) {
    std::vector<int64_t> widths;
    for (const Linear& map : maps_) widths.push_back(map.out());
    return split(product(x), 1, widths);
  }
  for (const Linear& map : maps_) out.push_back(map(x));
  return out;
}

Tensor LinearGroup::joined(const Tensor& x) const {
  if (runs_packed(x)) return product(x);
  std::vector<Tensor> out;
  for (const Linear& map : maps_) out.push_back(map(x));
  return concat(out, 1);
}

void LinearGroup::pack(DType compute) {
  int64_t rows = 0;
  bool biased = false;
  for (const Linear& map : maps_) {
    rows += map.out();
    biased = biased || map.has_bias();
  }
  const Tensor all = empty({rows, maps_.front().in()}, compute);
  bias_ = biased ? zeros({rows}) : Tensor();
  int64_t at = 0;
  for (const Linear& map : maps_) {
    const LinearWeights part = map.stored();
    all.slice(0, at, at + map.out()).copy_from(part.w.detach());
    if (part.bias) bias_.slice(0, at, at + map.out()).copy_from(part.bias.detach());
    at += map.out();
  }
  packed_ = prepack(all.transpose(0, 1));
}

}  // namespace mh
