// matmul: checks, a flattened view of the leading axes, the kernel's call.
#include "multihead/ops/products/matmul.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise_run.h"
#include "multihead/ops/rows/activation_run.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

bool is_product_type(DType t) { return t == DType::f32 || t == DType::bf16; }

void check_type(const char* op, const char* what, DType t) {
  if (!is_product_type(t))
    fail(ErrorKind::unsupported, "{}: {} has elements of type {}; expected f32 or bf16", op, what, name(t));
}

// What both kinds of w say about themselves.
struct Weights {
  DType dtype;
  int64_t k, n;
};

Shape result_shape(const Tensor& a, int64_t n) {
  Shape shape = a.shape();
  shape[shape.rank() - 1] = n;
  return shape;
}

void check_call(const Tensor& a, const Weights& w, const MatmulOptions& options, DType result) {
  check(a.rank() >= 1, "matmul: a is a scalar; expected rank 1 or more");
  check_type("matmul", "a", a.dtype());
  check(a.dtype() == w.dtype, "matmul: a is {} and w is {}; expected one type for both", name(a.dtype()),
        name(w.dtype));
  check(a.size(-1) == w.k,
        "matmul: the last axis of a has {} elements and w has {} rows; expected the same; a is {}, w is [{}, {}]",
        a.size(-1), w.k, to_string(a.shape()), w.k, w.n);
  check_type("matmul", "the result", result);
  if (const Tensor& bias = options.bias) {
    check_type("matmul", "bias", bias.dtype());
    check(bias.rank() == 1 && bias.size(0) == w.n,
          "matmul: bias does not fit the columns of w; expected [{}]; bias is {}", w.n, to_string(bias.shape()));
  }
  for (const auto& [what, given] : {std::pair{"residual", options.residual}, {"gate", options.gate}}) {
    if (!given) continue;
    check(given.dtype() == result, "matmul: {} is {}; expected {}, the type of the result", what, name(given.dtype()),
          name(result));
    const Shape wanted = result_shape(a, w.n);
    check(given.shape() == wanted, "matmul: {0} does not have the shape of the result; expected {1}; {0} is {2}", what,
          to_string(wanted), to_string(given.shape()));
  }
}

void check_result(const Tensor& y, const Tensor& a, const Tensor& w, const MatmulOptions& options) {
  const Shape wanted = result_shape(a, w.size(1));
  check(y.shape() == wanted && y.is_contiguous(), "matmul_into: y is {}{}; expected contiguous memory of {}", y.shape(),
        y.is_contiguous() ? "" : ", not contiguous", wanted);
  for (const Tensor* read : {&a, &w, &options.bias, &options.residual, &options.gate}) {
    check(!overlaps(y, *read), "matmul_into: y shares memory with an operand; expected memory of its own; y is {}",
          y.shape());
  }
}

// Fills in all but w and runs.
void multiply(const Tensor& y, const Tensor& a, const Weights& w, const MatmulOptions& options,
              kernels::GemmArgs args) {
  if (y.count() == 0) return;
  const int64_t m = y.count() / w.n;

  const Tensor rows = a.reshape(Shape{m, w.k});
  args.a = rows.view();
  args.k = w.k;
  args.n = w.n;
  args.y = y.reshape(Shape{m, w.n}).view();
  const Tensor bias = options.bias ? options.bias.to(DType::f32).contiguous() : Tensor();
  if (bias) args.bias = bias.view();
  const auto rows_of_result = [&](const Tensor& t) { return t ? t.reshape(Shape{m, w.n}).contiguous() : Tensor(); };
  const Tensor residual = rows_of_result(options.residual), gate = rows_of_result(options.gate);
  if (residual) args.residual = residual.view();
  if (gate) args.gate = gate.view();
  args.scale = options.scale;
  args.activation = detail::kernel_activation("matmul", options.activation);
  run(&Table::gemm, args, a);
}

// Gradients of a, w, bias and residual. What went into the activation is computed once more: only those who ask for the
// gradient of a fused activation pay for it.
Grads backward(const Tensor& a, const Tensor& w, const MatmulOptions& options, const Tensor& dy) {
  const Tensor through = options.gate ? detail::activation_gradient("matmul", Activation::relu, options.gate, dy) : dy;
  Tensor dz = through;
  if (options.activation != Activation::none) {
    const Tensor z = matmul(a, w, {.bias = options.bias, .scale = options.scale, .result = dy.dtype()});
    dz = detail::activation_gradient("matmul", options.activation, z, through);
  }
  const Tensor d = detail::rows_of(dz).to(a.dtype()), rows = detail::rows_of(a);
  Grads out(4);
  out[0] = matmul(d, w.transpose(0, 1), {.scale = options.scale}).reshape(a.shape());
  out[1] = matmul(rows.transpose(0, 1), d, {.scale = options.scale, .result = DType::f32}).to(w.dtype());
  if (options.bias) out[2] = detail::run_reduce(d, {true, false}, false).reshape({d.size(1)}).to(options.bias.dtype());
  if (options.residual) out[3] = through;
  return out;
}

Weights plain_weights(const Tensor& w) {
  check(w.rank() == 2, "matmul: w has rank {}; expected 2, (K, N); w is {}", w.rank(), to_string(w.shape()));
  return {w.dtype(), w.size(0), w.size(1)};
}

}  // namespace

PackedWeights prepack(const Tensor& w) {
  check(w.rank() == 2, "prepack: w has rank {}; expected 2, (K, N); w is {}", w.rank(), to_string(w.shape()));
  check_type("prepack", "w", w.dtype());
  refuse_traced("prepack", {w});

  int64_t bytes = 0;
  run(&Table::gemm_pack, {.w = w.view(), .bytes = &bytes}, w);

  PackedWeights packed;
  packed.words_ = empty_on(w, Shape{bytes}, DType::u8);
  packed.rung_ = kernels::kernels_of(w.device()).rung;
  packed.dtype_ = w.dtype();
  packed.k_ = w.size(0);
  packed.n_ = w.size(1);
  if (bytes > 0) run(&Table::gemm_pack, {.w = w.view(), .packed = packed.words_.view().data}, w);
  return packed;
}

Tensor matmul(const Tensor& a, const Tensor& w, const MatmulOptions& options) {
  const Weights weights = plain_weights(w);
  const DType result = options.result.value_or(a.dtype());
  check_call(a, weights, options, result);
  detail::check_devices("matmul", {&a, &w, &options.bias, &options.residual, &options.gate});

  const Tensor y = empty_on(a, result_shape(a, weights.n), result);
  multiply(y, a, weights, options, {.w = w.view()});

  if (!recording({a, w, options.bias, options.residual})) return y;
  MatmulOptions saved = options;
  for (Tensor* each : {&saved.bias, &saved.residual, &saved.gate}) *each = each->detach();
  return record("matmul", y, {a, w, options.bias, options.residual},
                [a = a.detach(), w = w.detach(), saved](const Tensor& dy) { return backward(a, w, saved, dy); });
}

Tensor matmul(const Tensor& a, const PackedWeights& w, const MatmulOptions& options) {
  check(static_cast<bool>(w), "matmul: w holds no weights; expected what prepack made");
  const Weights weights{w.dtype_, w.k_, w.n_};
  const DType result = options.result.value_or(a.dtype());
  check_call(a, weights, options, result);
  detail::check_devices("matmul", {&a, &w.words_, &options.bias, &options.residual, &options.gate});
  const std::string_view rung = kernels::kernels_of(a.device()).rung;
  check(w.rung_ == rung, "matmul: w was packed on the rung {}; expected {}, the one in use; w is [{}, {}]", w.rung_,
        rung, w.k_, w.n_);

  const Tensor y = empty_on(a, result_shape(a, weights.n), result);
  multiply(y, a, weights, options, {.packed = w.words_.view().data});
  return refuse_gradient("matmul of packed weights", y, {a, options.bias, options.residual});
}

void matmul_into(const Tensor& y, const Tensor& a, const Tensor& w, const MatmulOptions& options) {
  const Weights weights = plain_weights(w);
  check_call(a, weights, options, y.dtype());
  detail::check_devices("matmul_into", {&y, &a, &w, &options.bias, &options.residual, &options.gate});
  check_result(y, a, w, options);
  refuse_traced("matmul_into", {a, w, options.bias, options.residual});
  multiply(y, a, weights, options, {.w = w.view()});
}

}  // namespace mh
