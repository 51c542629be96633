// Joins attention over disjoint sets of keys row by row, and the gradient of that.
#include "multihead/kernels/merge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/kernels/cpu/plain/plain.h"

namespace mh::kernels::plain {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

// Rows of o and entries of lse side by side, padded (B, H, T) or packed (H, ΣT).
struct Rows {
  explicit Rows(const MergePart& part) : o(part.o), lse(part.lse), packed(lse.rank == 2) {
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

std::vector<Rows> rows_of(const MergePart* parts, int64_t count) {
  std::vector<Rows> all;
  for (int64_t n = 0; n < count; ++n) all.emplace_back(parts[n]);
  return all;
}

// Share of each part in the joined row; all 0 where every part is empty.
float joined_lse(const std::vector<Rows>& parts, int64_t n, std::vector<float>& shares) {
  float top = kEmpty;
  for (const Rows& part : parts) top = std::max(top, *part.entry(n));
  double sum = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const float lse = *parts[p].entry(n);
    shares[p] = lse == kEmpty ? 0.0f : std::exp(lse - top);
    sum += shares[p];
  }
  if (sum == 0) return kEmpty;
  for (float& share : shares) share = static_cast<float>(share / sum);
  return static_cast<float>(top + std::log(sum));
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
    if (*parts[p].entry(n) == kEmpty) continue;
    const T* o = parts[p].template row<T>(n);
    for (int64_t d = 0; d < out.width; ++d) sum[d] += shares[p] * static_cast<float>(o[d]);
  }
  T* to = out.template row<T>(n);
  for (int64_t d = 0; d < out.width; ++d) to[d] = static_cast<T>(sum[d]);
}

// d_o_n = w_n · d_o,  d_lse_n = w_n · (d_o · (o_n - o) + d_lse),  w_n = exp(lse_n - lse).
template <class T>
void merge_row_backward(const std::vector<Rows>& parts, const Rows& joined, const Rows& grad, bool with_lse,
                        const std::vector<Rows>& out, int64_t n) {
  const T* d_o = grad.template row<T>(n);
  const T* o = joined.template row<T>(n);
  const float lse = *joined.entry(n);
  const float from_lse = with_lse ? *grad.entry(n) : 0.0f;
  for (size_t p = 0; p < parts.size(); ++p) {
    const float own = *parts[p].entry(n);
    const float share = own == kEmpty ? 0.0f : std::exp(own - lse);
    T* to = out[p].template row<T>(n);
    float change = from_lse;
    for (int64_t d = 0; d < grad.width; ++d) {
      to[d] = own == kEmpty ? T{} : static_cast<T>(share * static_cast<float>(d_o[d]));
      if (own != kEmpty) {
        change += static_cast<float>(d_o[d]) *
                  (static_cast<float>(parts[p].template row<T>(n)[d]) - static_cast<float>(o[d]));
      }
    }
    *out[p].entry(n) = own == kEmpty ? 0.0f : share * change;
  }
}

}  // namespace

void merge_forward(const MergeForwardArgs& args, Queue&) {
  const std::vector<Rows> in = rows_of(args.parts, args.count);
  const Rows to(args.out);
  visit_float("merge", args.out.o.dtype,
              [&]<class T>() { for_each_row(to.count, [&](int64_t n) { merge_row<T>(in, to, n); }); });
}

void merge_backward(const MergeBackwardArgs& args, Queue&) {
  const std::vector<Rows> in = rows_of(args.parts, args.count), to = rows_of(args.gradients, args.count);
  const Rows whole(args.joined), grad(MergePart{args.d_o, args.d_lse ? args.d_lse : args.joined.lse});
  visit_float("merge_backward", args.joined.o.dtype, [&]<class T>() {
    for_each_row(whole.count,
                 [&](int64_t n) { merge_row_backward<T>(in, whole, grad, static_cast<bool>(args.d_lse), to, n); });
  });
}

void lse_choice(const LseChoiceArgs& args, Queue&) {
  constexpr float kRounding = 1e-5f;
  for (int64_t n = 0; n < args.count; ++n) {
    const float its = args.given[n];
    if (!(std::abs(args.own[n] - its) <= kRounding * (1 + std::abs(its)))) args.own[n] = its;
  }
}

}  // namespace mh::kernels::plain
