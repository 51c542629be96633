// Running a part again for its gradients.
#include "multihead/autograd/recompute.h"

namespace mh {

namespace {

Grads gradients_again(const std::vector<Tensor>& inputs, const std::vector<Tensor>& parameters,
                      const std::function<Tensor(const std::vector<Tensor>&)>& f, const Tensor& dy) {
  // Fresh traces: what f makes of its inputs must end at this tape.
  std::vector<Tensor> here;
  for (const Tensor& x : inputs) here.push_back(x.trace() != 0 ? parameter(x) : x);
  Tape tape;
  const Tensor y = f(here);
  check(y.shape() == dy.shape(), "recompute: the second run gave another shape; expected {}; it is {}", dy.shape(),
        y.shape());
  Gradients sums;
  tape.backward({y}, {dy}, sums);
  Grads grads;
  for (const Tensor& x : here) grads.push_back(x.trace() != 0 ? sums.find(x) : Tensor());
  for (const Tensor& w : parameters) grads.push_back(sums.find(w));
  return grads;
}

}  // namespace

Tensor recompute(const std::vector<Tensor>& inputs, const std::vector<Tensor>& parameters,
                 const std::function<Tensor(const std::vector<Tensor>& inputs)>& f) {
  std::vector<Tensor> all = inputs;
  all.insert(all.end(), parameters.begin(), parameters.end());
  if (!recording(all)) return f(inputs);
  Tensor y;
  {
    const NoTape closed;
    y = f(inputs);
  }
  return record("recompute", y, all,
                [inputs, parameters, f](const Tensor& dy) { return gradients_again(inputs, parameters, f, dy); });
}

}  // namespace mh
