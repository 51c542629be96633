// The plain algorithm: the naive one in float, rounded where a tensor of the type would be stored.
#include "multihead/check/plain.h"

#include "multihead/check/naive_backward.inl"

namespace mh::plain {

using reference::Derivatives;
using reference::Naive;
using reference::Outputs;
using reference::to_tensor;

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  Naive<float> naive(q, k, v, options, q.dtype());
  const Outputs<float> out = naive.forward();
  return {to_tensor(out.o, naive.problem.o_shape(), q.dtype()),
          to_tensor(out.lse, naive.problem.lse_shape(), DType::f32)};
}

AttentionGradients attention_backward(const AttentionCall& call, const Tensor& d_o, const Tensor& d_lse,
                                      const AttentionOptions& options) {
  Naive<float> naive(call.q, call.k, call.v, options, call.q.dtype());
  const Derivatives<float> d = naive.backward(d_o, d_lse);
  const auto f32 = [](const std::vector<float>& numbers) {
    return to_tensor(numbers, {static_cast<int64_t>(numbers.size())}, DType::f32);
  };
  AttentionGradients out;
  out.dq = to_tensor(d.dq, call.q.shape(), call.q.dtype());
  out.dk = to_tensor(d.dk, call.k.shape(), call.k.dtype());
  out.dv = to_tensor(d.dv, call.v.shape(), call.v.dtype());
  for (const auto& each : d.dbias) out.dbias.push_back(f32(each));
  if (!d.dsink.empty()) out.dsink = f32(d.dsink);
  if (!d.dtau.empty()) out.dtau = f32(d.dtau);
  if (!d.dmix.empty()) out.dmix = f32(d.dmix);
  return out;
}

}  // namespace mh::plain
