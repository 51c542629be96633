// adamw, sum_of_squares, lerp, accumulate: checks and the kernels' calls.
#include "multihead/ops/update.h"

#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

void check_place(std::string_view op, std::string_view what, const Tensor& x, const Shape& shape) {
  check(x.shape() == shape, "{}: {} has another shape; expected {}; {} is {}", op, what, shape, what, x.shape());
  check(x.is_contiguous(), "{}: {} is not contiguous; expected one that is, to be changed in place; it is {}", op, what,
        x.shape());
}

void check_f32(std::string_view op, std::string_view what, const Tensor& x) {
  if (x.dtype() != DType::f32)
    fail(ErrorKind::unsupported, "{}: {} has elements of type {}; expected f32", op, what, name(x.dtype()));
}

void check_options(const AdamwOptions& o) {
  const auto is_size = [](float x) { return x >= 0 && std::isfinite(x); };
  const auto is_share = [](float x) { return x >= 0 && x < 1; };
  check(o.step >= 1, "adamw: step is {}; expected 1 or more", o.step);
  check(is_share(o.beta1) && is_share(o.beta2), "adamw: the betas are {} and {}; expected both in [0, 1)", o.beta1,
        o.beta2);
  check(is_size(o.rate) && is_size(o.eps) && is_size(o.decay),
        "adamw: rate {}, eps {} and decay {}; expected finite numbers, 0 or more", o.rate, o.eps, o.decay);
  check(std::isfinite(o.gradient_scale), "adamw: the gradient's scale is {}; expected a finite number",
        o.gradient_scale);
}

}  // namespace

void adamw(const AdamwState& state, const Tensor& g, const AdamwOptions& options) {
  const Shape shape = state.w.shape();
  for (const auto& [what, x] : {std::pair{"w", state.w}, {"m", state.m}, {"v", state.v}}) {
    check_f32("adamw", what, x);
    check_place("adamw", what, x, shape);
  }
  detail::check_float("adamw", "g", g);
  check(g.shape() == shape, "adamw: g has another shape than w; w is {}, g is {}", shape, g.shape());
  if (state.copy) {
    check_place("adamw", "copy", state.copy, shape);
    if (state.copy.dtype() != DType::bf16)
      fail(ErrorKind::unsupported, "adamw: copy has elements of type {}; expected bf16", name(state.copy.dtype()));
  }
  check_options(options);
  detail::check_devices("adamw", {&state.w, &state.m, &state.v, &state.copy, &g});
  refuse_traced("adamw", {state.w, state.m, state.v, g});

  const Tensor gradient = detail::dense(g);
  const auto step = static_cast<double>(options.step);
  run(&Table::adamw,
      {.w = state.w.view().as<float>(),
       .m = state.m.view().as<float>(),
       .v = state.v.view().as<float>(),
       .g = gradient.view().data,
       .g_type = g.dtype(),
       .copy = state.copy ? state.copy.view().as<bf16>() : nullptr,
       .count = state.w.count(),
       .rate = options.rate,
       .beta1 = options.beta1,
       .beta2 = options.beta2,
       .eps = options.eps,
       .decay = options.decay,
       .correction1 = static_cast<float>(1 - std::pow(static_cast<double>(options.beta1), step)),
       .correction2 = static_cast<float>(1 - std::pow(static_cast<double>(options.beta2), step)),
       .gradient_scale = options.gradient_scale},
      state.w);
}

double sum_of_squares(const Tensor& x) {
  detail::check_float("sum_of_squares", "x", x);
  refuse_traced("sum_of_squares", {x});
  const Tensor from = detail::dense(x);
  const Tensor sum = empty_on(x, Shape{}, DType::f64);
  run(&Table::sum_of_squares,
      {.x = from.view().data, .x_type = x.dtype(), .count = x.count(), .sum = sum.view().as<double>()}, x);
  return sum.to(Device{}).item({});
}

void lerp(const Tensor& y, const Tensor& x, float part) {
  check_f32("lerp", "y", y);
  check_f32("lerp", "x", x);
  check_place("lerp", "y", y, y.shape());
  check(x.shape() == y.shape(), "lerp: x has another shape than y; y is {}, x is {}", y.shape(), x.shape());
  detail::check_devices("lerp", {&y, &x});
  refuse_traced("lerp", {y, x});
  const Tensor from = detail::dense(x);
  run(&Table::lerp, {.y = y.view().as<float>(), .x = from.view().as<float>(), .count = y.count(), .part = part}, y);
}

void accumulate(const Tensor& y, const Tensor& x) {
  detail::check_float("accumulate", "y", y);
  detail::check_float("accumulate", "x", x);
  detail::check_types("accumulate", x.dtype(), y.dtype());
  check_place("accumulate", "y", y, y.shape());
  check(x.shape() == y.shape(), "accumulate: x has another shape than y; y is {}, x is {}", y.shape(), x.shape());
  detail::check_devices("accumulate", {&y, &x});
  refuse_traced("accumulate", {y, x});
  const Tensor from = detail::dense(x);
  run(&Table::accumulate,
      {.x = from.view().data, .x_type = x.dtype(), .y = y.view().data, .y_type = y.dtype(), .count = y.count()}, y);
}

}  // namespace mh
