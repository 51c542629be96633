// Joins attention over disjoint sets of keys, and the gradient of that.
#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/autograd/tape.h"
#include "multihead/base/parallel.h"
#include "multihead/ops/attention/attention.h"
#include "multihead/ops/attention/plan.h"

namespace mh {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Rows of o and entries of lse side by side, padded (B, H, T) or packed (H, ΣT).
struct Rows {
  explicit Rows(const AttentionResult& result) : o(result.o.view()), lse(result.lse.view()), packed(lse.rank == 2) {
    for (int axis = 0; axis < lse.rank; ++axis) count *= lse.size[axis];
    width = o.size[o.rank - 1];
  }

  float* entry(int64_t n) const {
    const int64_t t = n % lse.size[lse.rank - 1], rest = n / lse.size[lse.rank - 1];
    return packed ? lse.at<float>(rest, t) : lse.at<float>(rest / lse.size[1], rest % lse.size[1], t);
  }
  template <class T>
  T* row(int64_t n) const {
    const int64_t t = n % lse.size[lse.rank - 1], rest = n / lse.size[lse.rank - 1];
    return packed ? o.at<T>(t, rest) : o.at<T>(rest / lse.size[1], rest % lse.size[1], t);
  }

  View o, lse;
  bool packed;
  int64_t count = 1, width = 0;
};

Shape lse_shape_of(const Shape& o) { return o.rank() == 4 ? Shape{o[0], o[1], o[2]} : Shape{o[1], o[0]}; }

void check_parts(std::string_view op, const std::vector<AttentionResult>& parts) {
  check(!parts.empty(), "{}: no parts are given; expected at least one", op);
  for (size_t n = 0; n < parts.size(); ++n) {
    const Tensor &o = parts[n].o, &lse = parts[n].lse, &first = parts[0].o;
    check(o && lse, "{}: part {} lacks o or lse; expected both", op, n);
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

std::vector<Rows> rows_of(const std::vector<AttentionResult>& parts) { return {parts.begin(), parts.end()}; }

// Share of each part in the joined row; all 0 where every part is empty.
float joined_lse(const std::vector<Rows>& parts, int64_t n, std::vector<float>& shares) {
  float top = kNone;
  for (const Rows& part : parts) top = std::max(top, *part.entry(n));
  double sum = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const float lse = *parts[p].entry(n);
    shares[p] = lse == kNone ? 0.0f : std::exp(lse - top);
    sum += shares[p];
  }
  if (sum == 0) return kNone;
  for (float& share : shares) share = static_cast<float>(share / sum);
  return static_cast<float>(top + std::log(sum));
}

// o and lse of every part, in turn.
std::vector<Tensor> flat(const std::vector<AttentionResult>& parts) {
  std::vector<Tensor> out;
  for (const AttentionResult& part : parts) out.insert(out.end(), {part.o, part.lse});
  return out;
}

constexpr int64_t kRowsPerTask = 64;

template <class F>
void for_each_row(int64_t count, F&& f) {
  parallel_for((count + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    for (int64_t n = task * kRowsPerTask; n < std::min((task + 1) * kRowsPerTask, count); ++n) f(n);
  });
}

template <class T>
void merge_row(const std::vector<Rows>& parts, const Rows& out, int64_t n) {
  std::vector<float> shares(parts.size()), sum(static_cast<size_t>(out.width));
  *out.entry(n) = joined_lse(parts, n, shares);
  for (size_t p = 0; p < parts.size(); ++p) {
    if (*parts[p].entry(n) == kNone) continue;
    const T* o = parts[p].template row<T>(n);
    for (int64_t d = 0; d < out.width; ++d) sum[d] += shares[p] * static_cast<float>(o[d]);
  }
  T* to = out.template row<T>(n);
  for (int64_t d = 0; d < out.width; ++d) to[d] = static_cast<T>(sum[d]);
}

// d_o_n = w_n · d_o,  d_lse_n = w_n · (d_o · (o_n - o) + d_lse),  w_n = exp(lse_n - lse).
template <class T>
void merge_row_backward(const std::vector<Rows>& parts, const Rows& joined, const Rows& grad, const View& d_lse,
                        const std::vector<Rows>& out, int64_t n) {
  const T* d_o = grad.template row<T>(n);
  const T* o = joined.template row<T>(n);
  const float lse = *joined.entry(n);
  const float from_lse = d_lse ? *grad.entry(n) : 0.0f;
  for (size_t p = 0; p < parts.size(); ++p) {
    const float own = *parts[p].entry(n);
    const float share = own == kNone ? 0.0f : std::exp(own - lse);
    T* to = out[p].template row<T>(n);
    float change = from_lse;
    for (int64_t d = 0; d < grad.width; ++d) {
      to[d] = own == kNone ? T{} : static_cast<T>(share * static_cast<float>(d_o[d]));
      if (own != kNone) {
        change += static_cast<float>(d_o[d]) *
                  (static_cast<float>(parts[p].template row<T>(n)[d]) - static_cast<float>(o[d]));
      }
    }
    *out[p].entry(n) = own == kNone ? 0.0f : share * change;
  }
}

}  // namespace

AttentionResult merge(const std::vector<AttentionResult>& parts) {
  check_parts("merge", parts);

  AttentionResult out{empty(parts[0].o.shape(), parts[0].o.dtype()), empty(parts[0].lse.shape())};
  const std::vector<Rows> in = rows_of(parts);
  const Rows to(out);
  visit_float("merge", out.o.dtype(),
              [&]<class T>() { for_each_row(to.count, [&](int64_t n) { merge_row<T>(in, to, n); }); });

  const std::vector<Tensor> inputs = flat(parts);
  if (!recording(inputs)) return out;
  std::vector<AttentionResult> saved;
  for (const AttentionResult& part : parts) saved.push_back({part.o.detach(), part.lse.detach()});
  const std::vector<Tensor> ys = record("merge", {out.o, out.lse}, inputs, [saved, out](const std::vector<Tensor>& d) {
    const Tensor d_o = d[0] ? d[0].contiguous() : zeros(out.o.shape(), out.o.dtype());
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
  for (const AttentionResult& part : parts)
    out.push_back({empty(part.o.shape(), part.o.dtype()), empty(part.lse.shape())});
  const std::vector<Rows> in = rows_of(parts), to = rows_of(out);
  const Rows whole(joined), grad(all.back());
  const View d_lse = gradient.lse ? gradient.lse.view() : View{};
  visit_float("merge_backward", joined.o.dtype(), [&]<class T>() {
    for_each_row(whole.count, [&](int64_t n) { merge_row_backward<T>(in, whole, grad, d_lse, to, n); });
  });
  const std::vector<Tensor> inputs = flat(all);
  for (AttentionResult& each : out) {
    each.o = refuse_gradient("merge_backward", each.o, inputs);
    each.lse = refuse_gradient("merge_backward", each.lse, inputs);
  }
  return out;
}

}  // namespace mh
