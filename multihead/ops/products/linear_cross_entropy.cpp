// linear_cross_entropy: logits, loss and both gradients a chunk of rows at a time.
#include "multihead/autograd/tape.h"
#include "multihead/kernels/rows.h"
#include "multihead/ops/elementwise_run.h"
#include "multihead/ops/rows/cross_entropy.h"
#include "multihead/ops/rows/cross_entropy_rows.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

using detail::rows_of;

// Rows of one chunk: 16 MB of logits for 8,000 classes. Time against linear and cross_entropy side by side (Zen 4,
// 2026-11, 1024 and 4096 rows of 256 elements): 64 rows 1.1 … 1.5, 128 rows 1.0 … 1.2, 256 rows 1.0, 512 and more 0.9
// … 1.0.
constexpr int64_t kChunk = 512;

// A matrix (K, N) laid out for products.
struct PackedMatrix {
  Tensor words;
  int64_t k, n;

  explicit PackedMatrix(const Tensor& w) : k(w.size(0)), n(w.size(1)) {
    int64_t bytes = 0;
    run(&Table::gemm_pack, {.w = w.view(), .bytes = &bytes}, w);
    words = empty_on(w, Shape{bytes}, DType::u8);
    run(&Table::gemm_pack, {.w = w.view(), .packed = words.view().data}, w);
  }

  // y = scale · a · w.
  void multiply(const Tensor& a, const Tensor& y, float scale) const {
    kernels::GemmArgs args;
    args.a = a.view();
    args.packed = words.view().data;
    args.n = n;
    args.k = k;
    args.y = y.view();
    args.scale = scale;
    run(&Table::gemm, args, a);
  }
};

// Everything of one call: only rows that count are computed with.
struct Call {
  Tensor x, w;  // (N, C) and (V, C) of one type
  CrossEntropyOptions options;
  std::vector<int64_t> rows{};        // those that count
  std::vector<int32_t> targets{};     // theirs
  const int64_t* row_list = nullptr;  // the same, on the device of x
  const int32_t* target_list = nullptr;
  std::vector<Tensor> held{};  // memory of these two, where it is not theirs
  float factor = 1;            // of each row's loss in the result
  Tensor dx{}, dw{};           // where wanted; dw is f32
  Tensor loss{}, nll{};        // one for each row that counts
};

// Rows `from` … of x that count, side by side.
Tensor taken(const Call& call, int64_t from, int64_t count) {
  const Tensor out = empty_on(call.x, Shape{count, call.x.size(1)}, call.x.dtype());
  run(&Table::take_rows, {.x = call.x.view(), .y = out.view(), .rows = call.row_list + from, .count = count}, out);
  return out;
}

void put_back(const Call& call, const Tensor& part, int64_t from) {
  run(&Table::put_rows, {.x = part.view(), .y = call.dx.view(), .rows = call.row_list + from, .count = part.size(0)},
      part);
}

// dw += factor · dlogitsᵀ · x.
void add_weights(const Call& call, const Tensor& dlogits, const Tensor& x, bool first) {
  kernels::GemmArgs args;
  const Tensor a = dlogits.transpose(0, 1);
  args.a = a.view();
  args.w = x.view();
  args.n = x.size(1);
  args.k = x.size(0);
  args.y = call.dw.view();
  if (!first) args.residual = call.dw.view();
  args.scale = call.factor;
  run(&Table::gemm, args, x);
}

void run_chunks(const Call& call) {
  const auto counted = static_cast<int64_t>(call.rows.size());
  const int64_t classes = call.w.size(0), width = call.w.size(1), most = std::min(kChunk, counted);
  const PackedMatrix forward(call.w.transpose(0, 1));
  const PackedMatrix backward = call.dx ? PackedMatrix(call.w) : forward;
  const Tensor logits = empty_on(call.x, Shape{most, classes});
  const Tensor dlogits = call.w.dtype() == DType::f32 ? logits : empty_on(call.x, Shape{most, classes}, call.w.dtype());
  const Tensor lse = empty_on(call.x, Shape{most}), part = empty_on(call.x, Shape{most, width}, call.x.dtype());
  for (int64_t from = 0; from < counted; from += kChunk) {
    const int64_t count = std::min(kChunk, counted - from);
    const Tensor x = taken(call, from, count), z = logits.slice(0, 0, count), dz = dlogits.slice(0, 0, count);
    forward.multiply(x, z, 1);
    const bool wanted = call.dx || call.dw;
    run(&Table::cross_entropy_forward,
        {.x = z.view(),
         .targets = call.target_list + from,
         .ignore = call.options.ignore,
         .smoothing = call.options.smoothing,
         .lse = lse.view().as<float>(),
         .loss = call.loss.view().as<float>() + from,
         .nll = call.nll.view().as<float>() + from,
         .dx = wanted ? dz.view() : View{}},
        call.x);
    if (!wanted) continue;
    if (call.dx) {
      const Tensor d = part.slice(0, 0, count);
      backward.multiply(dz, d, call.factor);
      put_back(call, d, from);
    }
    if (call.dw) add_weights(call, dz, x, from == 0);
  }
}

void check_call(const Tensor& x, const Tensor& w, const Tensor& targets) {
  const char* op = "linear_cross_entropy";
  detail::check_rows(op, "x", x);
  for (const auto& [what, of] : {std::pair{"x", x}, {"w", w}}) {
    if (of.dtype() != DType::f32 && of.dtype() != DType::bf16)
      fail(ErrorKind::unsupported, "{}: {} has elements of type {}; expected f32 or bf16", op, what, name(of.dtype()));
  }
  check(w.rank() == 2 && w.size(1) == x.size(-1),
        "{}: w does not fit the last axis of x; expected [V, {}]; x is {}, w is {}", op, x.size(-1), x.shape(),
        w.shape());
  check(targets.rank() == x.rank() - 1 && targets.count() == rows_of(x).size(0),
        "{}: targets does not fit x; expected one for each row; x is {}, targets is {}", op, x.shape(),
        targets.shape());
  detail::check_devices(op, {&x, &w});
}

Call plan(const Tensor& x, const Tensor& w, const Tensor& targets, const CrossEntropyOptions& options) {
  check_call(x, w, targets);
  const int64_t counted = detail::counted_rows("linear_cross_entropy", targets, w.size(0), options);
  Call call{.x = rows_of(x), .w = detail::dense(w), .options = options};
  if (call.w.dtype() != x.dtype()) call.w = detail::run_unary(kernels::Unary::copy, call.w, x.dtype());
  const Tensor wanted = detail::dense(targets).to(Device{});
  for (int64_t n = 0; n < wanted.count(); ++n) {
    if (wanted.data<int32_t>()[n] == options.ignore) continue;
    call.rows.push_back(n);
    call.targets.push_back(wanted.data<int32_t>()[n]);
  }
  call.row_list = detail::placed(call.rows, x.device(), call.held);
  call.target_list = detail::placed(call.targets, x.device(), call.held);
  if (options.reduction == Reduction::mean && counted > 0) call.factor = 1.0f / static_cast<float>(counted);
  call.loss = empty_on(x, Shape{counted});
  call.nll = empty_on(x, Shape{counted});
  if (!recording({x, w})) return call;
  const auto gradient = [&](const Tensor& like, DType type) {
    return counted < call.x.size(0) || counted == 0 ? zeros(like.shape(), type, like.device())
                                                    : empty(like.shape(), type, like.device());
  };
  if (x.trace() != 0) call.dx = gradient(call.x, x.dtype());
  if (w.trace() != 0) call.dw = gradient(w, DType::f32);
  return call;
}

// g, which nobody else holds, times dy.
Tensor scaled(const Tensor& g, double dy) {
  return !g || dy == 1 ? g : detail::run_unary(kernels::Unary::copy, g, g.dtype(), static_cast<float>(dy));
}

}  // namespace

CrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& targets,
                                  const CrossEntropyOptions& options) {
  const Call call = plan(x, w, targets, options);
  if (!call.rows.empty()) run_chunks(call);

  const Tensor loss = detail::total(call.loss, static_cast<double>(call.factor));
  const Tensor dx = call.dx ? call.dx.reshape(x.shape()) : Tensor(), dw = call.dw ? call.dw.to(w.dtype()) : Tensor();
  return {.loss = record("linear_cross_entropy", loss, {x, w},
                         [dx, dw](const Tensor& dy) {
                           const double by = dy.to(Device{}).item({});
                           return Grads{scaled(dx, by), scaled(dw, by)};
                         }),
          .nll = detail::total(call.nll, 1),
          .counted = static_cast<int64_t>(call.rows.size())};
}

}  // namespace mh
