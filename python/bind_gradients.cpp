// What multihead.torch is made of: the backward pass, and the shortest way for the plainest call.
#include <nanobind/stl/array.h>

#include <array>
#include <optional>

#include "multihead/ops/attention/attention.h"
#include "python/bindings.h"
#include "python/options.h"

namespace mh::python {

using namespace nb::literals;

namespace {

constexpr std::string_view kOp = "attention_backward";

// A gradient that is wanted: an array like what it belongs to.
class Wanted {
 public:
  Wanted(bool wanted, const Array& of) {
    if (wanted) output_.emplace(of, of.tensor().shape(), of.tensor().dtype());
  }
  Tensor tensor() const { return output_ ? output_->tensor() : Tensor{}; }
  nb::object release() { return output_ ? output_->release() : nb::none(); }

 private:
  std::optional<Output> output_;
};

struct Given {
  nb::handle q, k, v, o, lse, d_o, d_lse;
};

// Which gradients are wanted, in the order of the result.
struct Wants {
  bool q, k, v, bias, relative, sink, tau, mix;
};

Shape shape_of(const Bias& bias) {
  if (const auto* dense = std::get_if<DenseBias>(&bias)) return dense->values.shape();
  if (const auto* alibi = std::get_if<AlibiBias>(&bias)) return alibi->slopes.shape();
  return std::get<T5Bias>(bias).table.shape();
}

Shape shape_of(const ScoreMix& mix) {
  if (const auto* heads = std::get_if<HeadMix>(&mix)) return heads->matrix.shape();
  return std::get<KeyMix>(mix).matrix.shape();
}

// (dq, dk, dv, dbias, drelative, dsink, dtau, dmix), None where not wanted; past dv they are f32.
nb::tuple all_gradients(const Given& given, const Wants& wants, const OptionArguments& arguments) {
  const Array q({kOp, "q"}, given.q), k({kOp, "k"}, given.k), v({kOp, "v"}, given.v), o({kOp, "o"}, given.o),
      lse({kOp, "lse"}, given.lse), d_o({kOp, "d_o"}, given.d_o);
  std::optional<Array> d_lse;
  if (!given.d_lse.is_none()) d_lse.emplace(Site{kOp, "d_lse"}, given.d_lse);
  const CallOptions options(kOp, arguments, q);
  Wanted dq(wants.q, q), dk(wants.k, k), dv(wants.v, v);
  std::optional<Output> dense, relative, sink, tau, mix;
  AttentionGradients out{dq.tensor(), dk.tensor(), dv.tensor()};
  for (const Bias& bias : options.value.bias) {
    const bool is_dense = std::holds_alternative<DenseBias>(bias);
    std::optional<Output>& to = is_dense ? dense : relative;
    if (is_dense ? wants.bias : wants.relative) to.emplace(q, shape_of(bias), DType::f32);
    out.dbias.push_back(to ? to->tensor() : Tensor{});
  }
  const Shape heads{q.tensor().size(1)};
  if (wants.sink) out.dsink = sink.emplace(q, heads, DType::f32).tensor();
  if (wants.tau) out.dtau = tau.emplace(q, heads, DType::f32).tensor();
  if (wants.mix) out.dmix = mix.emplace(q, shape_of(options.value.score_mix), DType::f32).tensor();
  {
    const AttentionCall call{q.tensor(), k.tensor(), v.tensor(), {o.tensor(), lse.tensor()}};
    const OutputGradients gradients{d_o.tensor(), d_lse ? d_lse->tensor() : Tensor{}};
    nb::gil_scoped_release released;
    attention_backward_into(out, call, gradients, options.value);
  }
  const auto released = [](std::optional<Output>& each) { return each ? each->release() : nb::none(); };
  return nb::make_tuple(dq.release(), dk.release(), dv.release(), released(dense), released(relative), released(sink),
                        released(tau), released(mix));
}

bool wants_gradient(const Array& array) {
  return array.kind().has_gradients && nb::cast<bool>(array.object().attr("requires_grad"));
}

// Whether the four axes, the last stride, the batch and the heads are such that nothing needs to be said or copied.
bool fits(const Tensor& q, const Tensor& k, const Tensor& v, bool grouped) {
  const auto plain = [](const Tensor& t) { return t.rank() == 4 && t.stride(3) == 1 && t.size(3) >= 1; };
  return plain(q) && plain(k) && plain(v) && k.size(0) == q.size(0) && v.size(0) == q.size(0) && q.size(1) > 0 &&
         k.size(1) == v.size(1) && (grouped || k.size(1) == q.size(1)) &&
         (q.dtype() == DType::f32 || q.dtype() == DType::bf16 || q.dtype() == DType::f16);
}

// Puts PyTorch's attn_mask into the options: bools keep where True, floats are added. False: it takes another way.
bool take_mask(const Tensor& mask, AttentionOptions& options) {
  if (mask.rank() < 1 || mask.rank() > 4 || (mask.stride(-1) != 1 && mask.stride(-1) != 0 && mask.size(-1) > 1))
    return false;
  const DType dtype = mask.dtype();
  if (dtype == DType::boolean) {
    options.mask = keep(mask);
  } else if (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16) {
    options.bias.emplace_back(DenseBias{mask});
  } else {
    return false;
  }
  return true;
}

// The gradients (dq, dk, dv) of a plain call; None where there is more to it.
nb::object plain_backward(nb::handle q_object, nb::handle k_object, nb::handle v_object, nb::handle mask_object,
                          nb::handle o_object, nb::handle lse_object, nb::handle d_o_object, bool causal,
                          nb::handle scale, bool want_q, bool want_k, bool want_v) {
  const Array q({kOp, "q"}, q_object), k({kOp, "k"}, k_object), v({kOp, "v"}, v_object), o({kOp, "o"}, o_object),
      lse({kOp, "lse"}, lse_object), d_o({kOp, "d_o"}, d_o_object);
  if (d_o.tensor().rank() != 4 || d_o.tensor().stride(3) != 1) return nb::none();
  AttentionOptions options;
  std::optional<Array> mask;
  if (!mask_object.is_none()) {
    mask.emplace(Site{kOp, "attn_mask"}, mask_object);
    if (causal || !take_mask(mask->tensor(), options)) return nb::none();
  }
  if (causal) options.mask = from_torch_causal();
  if (!scale.is_none()) options.similarity = DotSimilarity{static_cast<float>(number({kOp, "scale"}, scale))};
  Wanted dq(want_q, q), dk(want_k, k), dv(want_v, v);
  {
    const AttentionCall call{q.tensor(), k.tensor(), v.tensor(), {o.tensor(), lse.tensor()}};
    nb::gil_scoped_release released;
    attention_backward_into({dq.tensor(), dk.tensor(), dv.tensor()}, call, {d_o.tensor(), {}}, options);
  }
  return nb::make_tuple(dq.release(), dk.release(), dv.release());
}

// PyTorch's call without dropout, where no gradient is wanted; None where there is more to it.
nb::object plain_attention(nb::handle q_object, nb::handle k_object, nb::handle v_object, nb::handle mask_object,
                           bool causal, nb::handle scale, bool grouped, bool recording) {
  constexpr std::string_view op = "scaled_dot_product_attention";
  const Array q({op, "query"}, q_object), k({op, "key"}, k_object), v({op, "value"}, v_object);
  if (recording && (wants_gradient(q) || wants_gradient(k) || wants_gradient(v))) return nb::none();
  if (!fits(q.tensor(), k.tensor(), v.tensor(), grouped)) return nb::none();
  AttentionOptions options;
  std::optional<Array> mask;
  if (!mask_object.is_none()) {
    mask.emplace(Site{op, "attn_mask"}, mask_object);
    if ((recording && wants_gradient(*mask)) || !take_mask(mask->tensor(), options)) return nb::none();
  }
  if (causal) options.mask = from_torch_causal();
  if (!scale.is_none()) options.similarity = DotSimilarity{static_cast<float>(number({op, "scale"}, scale))};
  Shape shape = q.tensor().shape();
  shape[3] = v.tensor().size(3);
  Output o(q, shape, q.tensor().dtype());
  {
    nb::gil_scoped_release released;
    attention_into({o.tensor(), {}}, q.tensor(), k.tensor(), v.tensor(), options);
  }
  return o.release();
}

}  // namespace

void bind_gradients(nb::module_& m) {
  m.def(
      "attention_gradients",
      [](nb::handle q, nb::handle k, nb::handle v, nb::handle o, nb::handle lse, nb::handle d_o, nb::handle d_lse,
         const std::array<bool, 8>& wants, nb::kwargs given) {
        const auto [want_q, want_k, want_v, bias, relative, sink, tau, mix] = wants;
        return all_gradients({q, k, v, o, lse, d_o, d_lse}, {want_q, want_k, want_v, bias, relative, sink, tau, mix},
                             option_arguments(kOp, given));
      },
      "q"_a, "k"_a, "v"_a, "o"_a, "lse"_a, "d_o"_a, "d_lse"_a.none(), nb::kw_only(), "wants"_a, "options"_a,
      "(dq, dk, dv, dbias, drelative, dsink, dtau, dmix) of a call with all its options; None where not wanted.");
  m.def("plain_attention", plain_attention, "q"_a, "k"_a, "v"_a, "mask"_a.none(), "causal"_a, "scale"_a.none(),
        "grouped"_a, "recording"_a, "PyTorch's call without dropout; None where there is more to it.");
  m.def("plain_backward", plain_backward, "q"_a, "k"_a, "v"_a, "mask"_a.none(), "o"_a, "lse"_a, "d_o"_a, "causal"_a,
        "scale"_a.none(), "want_q"_a, "want_k"_a, "want_v"_a,
        "(dq, dk, dv) of such a call; None where there is more to it.");
}

}  // namespace mh::python
