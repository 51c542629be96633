// Checks, and the layout of the weights.
#include "multihead/ops/products/sparse_linear.h"

#include <algorithm>

#include "multihead/autograd/tape.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

void check_type(const char* what, const Tensor& t) {
  if (t.dtype() != DType::f32)
    fail(ErrorKind::unsupported, "sparse_linear: {} has elements of type {}; expected f32", what, name(t.dtype()));
}

Tensor dense_rows(const Tensor& t) { return !t || t.stride(-1) == 1 ? t : t.contiguous(); }

}  // namespace

SparseWeights prepack_sparse(const Tensor& w) {
  check(w.rank() == 2, "prepack_sparse: w has rank {}; expected 2, (N, K); w is {}", w.rank(), w.shape());
  check_type("w", w);
  refuse_traced("prepack_sparse", {w});

  constexpr int64_t kPanel = kernels::kSparsePanel;
  SparseWeights out;
  out.n_ = w.size(0);
  out.k_ = w.size(1);
  const int64_t panels = (out.n_ + kPanel - 1) / kPanel;
  out.panels_ = zeros_on(w, {panels, out.k_, kPanel});
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int64_t first = panel * kPanel, end = std::min(first + kPanel, out.n_);
    out.panels_.select(0, panel).slice(1, 0, end - first).copy_from(w.detach().slice(0, first, end).transpose(0, 1));
  }
  return out;
}

Tensor sparse_linear(const Tensor& x, const SparseWeights& w, const Tensor& bias, const Tensor& residual) {
  check(static_cast<bool>(w), "sparse_linear: w holds no weights; expected what prepack_sparse made");
  check(x.rank() == 2 && x.size(1) == w.k_, "sparse_linear: the rows of x do not fit w, ({}, {}); x is {}", w.n_, w.k_,
        x.shape());
  check(!bias || bias.shape() == Shape{w.n_}, "sparse_linear: bias does not fit w, ({}, {}); bias is {}", w.n_, w.k_,
        bias.shape());
  check(!residual || residual.shape() == Shape{x.size(0), w.n_},
        "sparse_linear: residual does not fit; expected ({}, {}); residual is {}", x.size(0), w.n_, residual.shape());
  check_type("x", x);
  if (bias) check_type("bias", bias);
  if (residual) check_type("residual", residual);
  detail::check_devices("sparse_linear", {&x, &w.panels_, &bias, &residual});

  const Tensor y = empty_on(x, {x.size(0), w.n_});
  const Tensor rows = dense_rows(x), added = dense_rows(residual), shifts = dense_rows(bias);
  run(&Table::sparse_linear,
      {.x = rows.view(),
       .w = w.panels_.view().as<float>(),
       .n = w.n_,
       .bias = shifts ? shifts.view() : View{},
       .residual = added ? added.view() : View{},
       .y = y.view()},
      x);
  return refuse_gradient("sparse_linear", y, {x, bias, residual});
}

}  // namespace mh
