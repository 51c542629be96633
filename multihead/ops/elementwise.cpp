// Elementwise ops: checks, and derivatives out of the same kernels.
#include "multihead/ops/elementwise.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise_run.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

using detail::run_binary;
using detail::run_unary;
using detail::sum_to;
using kernels::Binary;
using kernels::Unary;

void check_pair(const char* op, const Tensor& a, const Tensor& b) {
  detail::check_float(op, "a", a);
  detail::check_float(op, "b", b);
  check(a.dtype() == b.dtype(), "{}: a is {} and b is {}; expected one type for both (ops/elementwise.h has cast)", op,
        name(a.dtype()), name(b.dtype()));
  detail::check_devices(op, {&a, &b});
  const Shape shape = detail::broadcast_shape(a.shape(), b.shape());
  for (int axis = 0; axis < shape.rank(); ++axis)
    check(shape[axis] >= 0,
          "{}: the shapes do not repeat to one another; expected axes that are equal or 1; a is {}, b is {}", op,
          a.shape(), b.shape());
}

// a and b of an op whose derivative does not need their values.
struct Shapes {
  Shape a, b;
  bool wants_a, wants_b;

  Shapes(const Tensor& x, const Tensor& y)
      : a(x.shape()), b(y.shape()), wants_a(x.trace() != 0), wants_b(y.trace() != 0) {}
};

Tensor add_scaled(const char* op, const Tensor& a, const Tensor& b, float factor) {
  check_pair(op, a, b);
  const Tensor y = run_binary(Binary::add, a, b, factor);
  return record(op, y, {a, b}, [of = Shapes(a, b), factor](const Tensor& dy) {
    Grads out(2);
    if (of.wants_a) out[0] = sum_to(dy, of.a);
    if (of.wants_b) {
      const Tensor db = sum_to(dy, of.b);
      out[1] = factor == 1 ? db : run_unary(Unary::copy, db, db.dtype(), factor);
    }
    return out;
  });
}

Tensor mapped(const char* op, const Tensor& x, Unary kind, float factor = 1) {
  detail::check_float(op, "x", x);
  return run_unary(kind, x, x.dtype(), factor);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return add_scaled("add", a, b, 1); }
Tensor sub(const Tensor& a, const Tensor& b) { return add_scaled("sub", a, b, -1); }

Tensor mul(const Tensor& a, const Tensor& b) {
  check_pair("mul", a, b);
  const Tensor y = run_binary(Binary::mul, a, b);
  return record("mul", y, {a, b}, [of = Shapes(a, b), a = a.detach(), b = b.detach()](const Tensor& dy) {
    Grads out(2);
    if (of.wants_a) out[0] = sum_to(run_binary(Binary::mul, dy, b), of.a);
    if (of.wants_b) out[1] = sum_to(run_binary(Binary::mul, dy, a), of.b);
    return out;
  });
}

Tensor div(const Tensor& a, const Tensor& b) {
  check_pair("div", a, b);
  const Tensor y = run_binary(Binary::div, a, b);
  return record("div", y, {a, b}, [of = Shapes(a, b), y, b = b.detach()](const Tensor& dy) {
    Grads out(2);
    if (of.wants_a) out[0] = sum_to(run_binary(Binary::div, dy, b), of.a);
    if (of.wants_b) out[1] = sum_to(run_binary(Binary::div, run_binary(Binary::mul, dy, y), b, -1), of.b);
    return out;
  });
}

Tensor maximum(const Tensor& a, const Tensor& b) {
  check_pair("maximum", a, b);
  const Tensor y = run_binary(Binary::maximum, a, b);
  return record("maximum", y, {a, b}, [of = Shapes(a, b), a = a.detach(), b = b.detach()](const Tensor& dy) {
    Grads out(2);
    if (of.wants_a) out[0] = sum_to(run_binary(Binary::mul, dy, run_binary(Binary::larger, a, b)), of.a);
    if (of.wants_b) out[1] = sum_to(run_binary(Binary::mul, dy, run_binary(Binary::larger, b, a)), of.b);
    return out;
  });
}

Tensor scale(const Tensor& x, float factor) {
  const Tensor y = mapped("scale", x, Unary::copy, factor);
  return record("scale", y, {x},
                [factor](const Tensor& dy) { return Grads{run_unary(Unary::copy, dy, dy.dtype(), factor)}; });
}

Tensor exp(const Tensor& x) {
  const Tensor y = mapped("exp", x, Unary::exp);
  return record("exp", y, {x}, [y](const Tensor& dy) { return Grads{run_binary(Binary::mul, dy, y)}; });
}

Tensor log(const Tensor& x) {
  const Tensor y = mapped("log", x, Unary::log);
  return record("log", y, {x}, [x = x.detach()](const Tensor& dy) { return Grads{run_binary(Binary::div, dy, x)}; });
}

Tensor sqrt(const Tensor& x) {
  const Tensor y = mapped("sqrt", x, Unary::sqrt);
  return record("sqrt", y, {x}, [y](const Tensor& dy) { return Grads{run_binary(Binary::div, dy, y, 0.5f)}; });
}

Tensor square(const Tensor& x) {
  const Tensor y = mapped("square", x, Unary::square);
  return record("square", y, {x},
                [x = x.detach()](const Tensor& dy) { return Grads{run_binary(Binary::mul, dy, x, 2)}; });
}

Tensor cast(const Tensor& x, DType type) {
  detail::check_float("cast", "x", x);
  detail::check_types("cast", x.dtype(), type);
  if (x.dtype() == type) return x;
  const Tensor y = run_unary(Unary::copy, x, type);
  return record("cast", y, {x},
                [type = x.dtype()](const Tensor& dy) { return Grads{run_unary(Unary::copy, dy, type)}; });
}

}  // namespace mh
