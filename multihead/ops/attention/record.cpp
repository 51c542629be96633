// Attention on the tape: which inputs are traced, and their gradients from those of o and lse.
#include "multihead/ops/attention/record.h"

#include "multihead/ops/run.h"

namespace mh::detail {

namespace {

Tensor learned(const Bias& bias) {
  if (const auto* dense = std::get_if<DenseBias>(&bias)) return dense->values;
  if (const auto* alibi = std::get_if<AlibiBias>(&bias)) return alibi->slopes;
  return std::get<T5Bias>(bias).table;
}

Tensor learned_taus(const AttentionOptions& options) {
  const auto* cosine = std::get_if<CosineSimilarity>(&options.similarity);
  return cosine != nullptr ? cosine->taus : Tensor();
}

Tensor learned_mix(const AttentionOptions& options) {
  if (const auto* heads = std::get_if<HeadMix>(&options.score_mix)) return heads->matrix;
  if (const auto* keys = std::get_if<KeyMix>(&options.score_mix)) return keys->matrix;
  return {};
}

// Packed rows (ΣT, H, D) whose heads lie densely.
bool has_dense_heads(const Tensor& x) { return x.rank() == 3 && x.stride(2) == 1 && x.stride(1) == x.size(2); }

const char* first_byte(const Tensor& x) { return static_cast<const char*>(x.view().data); }

int64_t row_width(const Tensor& x) { return x.size(1) * x.size(2); }

// Room for the gradients of projections. Those that are slices of one wider matrix get slices of one wider gradient, so
// that the matrix's own gradient is there without a copy (ops/shape.h: split).
std::vector<Tensor> empty_beside(const std::vector<Tensor>& parts) {
  bool joined = parts.size() > 1;
  int64_t width = 0;
  for (size_t n = 0; n < parts.size() && joined; ++n) {
    const Tensor& part = parts[n];
    joined = has_dense_heads(part) && part.size(0) == parts[0].size(0) && part.stride(0) == parts[0].stride(0) &&
             part.dtype() == parts[0].dtype() &&
             first_byte(part) == first_byte(parts[0]) + width * size_of(part.dtype());
    if (joined) width += row_width(part);
  }
  std::vector<Tensor> out;
  if (!joined || parts[0].stride(0) != width) {
    for (const Tensor& part : parts) out.push_back(empty_like(part));
    return out;
  }
  const Tensor all = empty_on(parts[0], {parts[0].size(0), width}, parts[0].dtype());
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    out.push_back(all.slice(1, begin, begin + row_width(part)).reshape(part.shape()));
    begin += row_width(part);
  }
  return out;
}

// Gradients for the inputs that are traced; the rest stays empty and is not computed.
AttentionGradients wanted_gradients(const AttentionCall& call, const AttentionOptions& options) {
  AttentionGradients out;
  std::vector<Tensor> parts = empty_beside({call.q, call.k, call.v});
  if (parts[1].owns_alone()) {  // q lies elsewhere; k and v may still be slices of one matrix
    const std::vector<Tensor> pair = empty_beside({call.k, call.v});
    parts = {parts[0], pair[0], pair[1]};
  }
  if (call.q.trace() != 0) out.dq = parts[0];
  if (call.k.trace() != 0) out.dk = parts[1];
  if (call.v.trace() != 0) out.dv = parts[2];
  for (const Bias& bias : options.bias) {
    const Tensor values = learned(bias);
    out.dbias.push_back(values.trace() != 0 ? empty_on(values, values.shape()) : Tensor());
  }
  if (options.sink.trace() != 0) out.dsink = empty_on(options.sink, options.sink.shape());
  if (learned_taus(options).trace() != 0) out.dtau = empty_on(call.q, learned_taus(options).shape());
  if (learned_mix(options).trace() != 0) out.dmix = empty_on(call.q, learned_mix(options).shape());
  return out;
}

}  // namespace

std::vector<Tensor> traceable(const AttentionCall& call, const AttentionOptions& options) {
  std::vector<Tensor> inputs{call.q, call.k, call.v};
  for (const Bias& bias : options.bias) inputs.push_back(learned(bias));
  inputs.push_back(options.sink);
  inputs.push_back(learned_taus(options));
  inputs.push_back(learned_mix(options));
  return inputs;
}

AttentionResult record_attention(const AttentionCall& call, const AttentionOptions& options) {
  const std::vector<Tensor> ys =
      record("attention", {call.result.o, call.result.lse}, traceable(call, options),
             [call, options](const std::vector<Tensor>& dys) {
               const AttentionGradients out = wanted_gradients(call, options);
               OutputGradients given{dys[0], dys[1]};
               if (!given.d_o) given.d_o = zeros(call.result.o.shape(), call.result.o.dtype(), call.result.o.device());
               if (given.d_o.size(-1) > 1 && given.d_o.stride(-1) != 1) given.d_o = given.d_o.contiguous();
               attention_backward_into(out, call, given, options);
               Grads grads{out.dq, out.dk, out.dv};
               grads.insert(grads.end(), out.dbias.begin(), out.dbias.end());
               grads.insert(grads.end(), {out.dsink, out.dtau, out.dmix});
               return grads;
             });
  return {ys[0], ys[1]};
}

}  // namespace mh::detail
