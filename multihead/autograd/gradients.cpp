// Sums of gradients.
#include "multihead/autograd/gradients.h"

#include <algorithm>

#include "multihead/base/parallel.h"
#include "multihead/tensor/convert.h"

namespace mh {

namespace {

constexpr int64_t kElementsPerTask = 1 << 15;

// sum += g, both contiguous. A bf16 sum is rounded at every addition, as its type says.
void accumulate(const Tensor& sum, const Tensor& g) {
  visit_float("gradient", sum.dtype(), [&]<class To>() {
    visit_float("gradient", g.dtype(), [&]<class From>() {
      To* to = sum.data<To>();
      const From* from = g.data<From>();
      const int64_t count = sum.count();
      parallel_for((count + kElementsPerTask - 1) / kElementsPerTask, [&](int64_t task) {
        const int64_t end = std::min(count, (task + 1) * kElementsPerTask);
        for (int64_t i = task * kElementsPerTask; i < end; ++i)
          to[i] = convert<To>(static_cast<float>(to[i]) + static_cast<float>(from[i]));
      });
    });
  });
}

}  // namespace

Tensor Gradients::find(const Tensor& x) const {
  const auto at = held_.find(x.trace());
  return at == held_.end() ? Tensor() : at->second;
}

Tensor Gradients::of(const Tensor& x) const {
  check(x.trace() != 0 && x.trace() != kCutTrace, "gradient: the tensor is not traced; expected a parameter; it is {}",
        x.shape());
  const Tensor g = find(x);
  check(static_cast<bool>(g), "gradient: nothing that was computed depends on the tensor; it is {}", x.shape());
  return g;
}

void Gradients::add(uint64_t trace, Tensor g) {
  Tensor& sum = held_[trace];
  if (!sum) {
    sum = std::move(g);
    return;
  }
  check(sum.shape() == g.shape(), "gradient: a part of the sum has another shape; expected {}; it is {}", sum.shape(),
        g.shape());
  // A view, or memory that an op handed to two of its inputs, is not ours to add to.
  if (!sum.owns_alone() || !sum.is_contiguous() || overlaps_itself(sum)) {
    Tensor own = empty(sum.shape(), sum.dtype());
    own.copy_from(sum);
    sum = own;
  }
  accumulate(sum, g.contiguous());
}

Tensor Gradients::take(uint64_t trace) {
  const auto at = held_.find(trace);
  if (at == held_.end()) return {};
  Tensor g = std::move(at->second);
  held_.erase(at);
  return g;
}

}  // namespace mh
