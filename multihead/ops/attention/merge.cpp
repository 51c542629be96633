// Joins attention over disjoint sets of keys, and the gradient of that.
#include "multihead/kernels/merge.h"
#include "multihead/autograd/tape.h"
#include "multihead/ops/attention/attention.h"
#include "multihead/ops/run.h"

namespace mh {
namespace {

Shape lse_shape_of(const Shape& o) { return o.rank() == 4 ? Shape{o[0], o[1], o[2]} : Shape{o[1], o[0]}; }

void check_parts(std::string_view op, const std::vector<AttentionResult>& parts) {
  check(!parts.empty(), "{}: no parts are given; expected at least one", op);
  for (size_t n = 0; n < parts.size(); ++n) {
    const Tensor &o = parts[n].o, &lse = parts[n].lse, &first = parts[0].o;
    check(o && lse, "{}: part {} lacks o or lse; expected both", op, n);
    detail::check_devices(op, {&first, &o, &lse});
    check(o.rank() == 4 || o.rank() == 3, "{}: o of part {} is {}; expected (B, H, Tq, Dv) or packed (T, H, Dv)", op, n,
          o.shape());
    if (o.dtype() != DType::f32 && o.dtype() != DType::bf16 && o.dtype() != DType::f16) {
      fail(ErrorKind::unsupported, "{}: o of part {} holds {}; expected f32, bf16 or f16; o is {}", op, n,
           name(o.dtype()), o.shape());
    }
    check(o.shape() == first.shape() && o.dtype() == first.dtype(),
          "{}: o of part {} is {} {}; expected that of part 0, {} {}", op, n, name(o.dtype()), o.shape(),
          name(first.dtype()), first.shape());
    check(lse.dtype() == DType::f32 && lse.shape() == lse_shape_of(o.shape()),
          "{}: lse of part {} is {} {}; expected f32 {}; o is {}", op, n, name(lse.dtype()), lse.shape(),
          lse_shape_of(o.shape()), o.shape());
    check(o.size(-1) <= 1 || o.stride(-1) == 1, "{}: o of part {} has a last stride of {}; expected 1; o is {}", op, n,
          o.stride(-1), o.shape());
  }
}

// What the kernel is told of each part.
std::vector<kernels::MergePart> views_of(const std::vector<AttentionResult>& parts) {
  std::vector<kernels::MergePart> views;
  for (const AttentionResult& part : parts) views.push_back({part.o.view(), part.lse.view()});
  return views;
}

// o and lse of every part, in turn.
std::vector<Tensor> flat(const std::vector<AttentionResult>& parts) {
  std::vector<Tensor> out;
  for (const AttentionResult& part : parts) out.insert(out.end(), {part.o, part.lse});
  return out;
}

}  // namespace

AttentionResult merge(const std::vector<AttentionResult>& parts) {
  check_parts("merge", parts);

  AttentionResult out{empty_like(parts[0].o), empty_like(parts[0].lse)};
  const std::vector<kernels::MergePart> in = views_of(parts);
  std::vector<Tensor> held;
  run(&Table::merge_forward,
      {.parts = detail::placed(in, out.o.device(), held),
       .count = static_cast<int64_t>(in.size()),
       .out = {out.o.view(), out.lse.view()}},
      out.o);

  const std::vector<Tensor> inputs = flat(parts);
  if (!recording(inputs)) return out;
  std::vector<AttentionResult> saved;
  for (const AttentionResult& part : parts) saved.push_back({part.o.detach(), part.lse.detach()});
  const std::vector<Tensor> ys = record("merge", {out.o, out.lse}, inputs, [saved, out](const std::vector<Tensor>& d) {
    const Tensor d_o = d[0] ? d[0].contiguous() : zeros(out.o.shape(), out.o.dtype(), out.o.device());
    return flat(merge_backward(saved, out, {d_o, d[1]}));
  });
  return {ys[0], ys[1]};
}

std::vector<AttentionResult> merge_backward(const std::vector<AttentionResult>& parts, const AttentionResult& joined,
                                            const AttentionResult& gradient) {
  std::vector<AttentionResult> all = parts;
  check_parts("merge_backward", parts);
  all.push_back(joined);
  all.push_back(gradient);
  if (!gradient.lse) all.back().lse = joined.lse;
  check_parts("merge_backward", all);

  std::vector<AttentionResult> out;
  for (const AttentionResult& part : parts) out.push_back({empty_like(part.o), empty_like(part.lse)});
  const std::vector<kernels::MergePart> in = views_of(parts), to = views_of(out);
  std::vector<Tensor> held;
  run(&Table::merge_backward,
      {.parts = detail::placed(in, joined.o.device(), held),
       .gradients = detail::placed(to, joined.o.device(), held),
       .count = static_cast<int64_t>(in.size()),
       .joined = {joined.o.view(), joined.lse.view()},
       .d_o = gradient.o.view(),
       .d_lse = gradient.lse ? gradient.lse.view() : View{}},
      joined.o);
  const std::vector<Tensor> inputs = flat(all);
  for (AttentionResult& each : out) {
    each.o = refuse_gradient("merge_backward", each.o, inputs);
    each.lse = refuse_gradient("merge_backward", each.lse, inputs);
  }
  return out;
}

}  // namespace mh
