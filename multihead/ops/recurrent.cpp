// Recurrent layers: checks, the order of steps, products and cells step by step, and the way back.
#include "multihead/ops/recurrent.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/kernels/rows.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/elementwise_run.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

using detail::dense;

kernels::Cell kernel_cell(Cell cell) {
  switch (cell) {
    case Cell::tanh: return kernels::Cell::tanh;
    case Cell::relu: return kernels::Cell::relu;
    case Cell::lstm: return kernels::Cell::lstm;
    case Cell::gru: return kernels::Cell::gru;
  }
  fail(ErrorKind::invalid_argument, "recurrent: cell {} is none of the four", static_cast<int>(cell));
}

int64_t gates_of(Cell cell) { return kGates[static_cast<size_t>(cell)]; }

void check_f32(const char* op, const char* what, const Tensor& x) {
  if (x && x.dtype() != DType::f32)
    fail(ErrorKind::unsupported, "{}: {} has elements of type {}; expected f32", op, what, name(x.dtype()));
}

void check_starts(const char* op, const Tensor& starts, int64_t rows) {
  if (starts.dtype() != DType::i32)
    fail(ErrorKind::unsupported, "{}: starts has elements of type {}; expected i32", op, name(starts.dtype()));
  check(starts.rank() == 1 && starts.size(0) >= 1, "{}: starts is {}; expected (B + 1)", op, starts.shape());
  const Tensor flat = dense(starts).to(Device{});
  const int32_t* at = flat.data<int32_t>();
  const int64_t count = starts.size(0) - 1;
  check(at[0] == 0 && at[count] == rows, "{}: starts runs from {} to {}; expected 0 to {}, the rows", op, at[0],
        at[count], rows);
  for (int64_t b = 0; b < count; ++b)
    check(at[b] <= at[b + 1], "{}: starts falls from {} to {} at sequence {}; expected no fall", op, at[b], at[b + 1],
          b);
}

void check_call(const Tensor& x, const Tensor& starts, const RecurrentWeights& weights,
                const RecurrentOptions& options) {
  const Tensor& w = weights.w;
  kernel_cell(options.cell);  // refuses a number that is none
  const int64_t gates = gates_of(options.cell);
  check(x.rank() == 2 && w.rank() == 2 && w.size(0) == gates * w.size(1) && x.size(1) == w.size(0),
        "recurrent: the rows of x do not fit w; expected x (R, {0} H) and w ({0} H, H); x is {1}, w is {2}", gates,
        x.shape(), w.shape());
  check_f32("recurrent", "x", x);
  check_f32("recurrent", "w", w);
  check_f32("recurrent", "bias", weights.bias);
  check(!weights.bias || weights.bias.shape() == Shape{w.size(0)}, "recurrent: bias is {}; expected [{}]; w is {}",
        weights.bias.shape(), w.size(0), w.shape());
  check(!weights.copy || (weights.copy.shape() == w.shape() && weights.copy.dtype() == DType::bf16),
        "recurrent: the copy of w is {} {}; expected bf16 {}", name(weights.copy.dtype()), weights.copy.shape(),
        w.shape());
  check(!weights.packed || (weights.packed.rows() == w.size(1) && weights.packed.columns() == w.size(0)),
        "recurrent: the packed weights are [{}, {}]; expected wᵀ; w is {}", weights.packed.rows(),
        weights.packed.columns(), w.shape());
  detail::check_devices("recurrent", {&x, &w, &weights.bias, &weights.copy, &options.start.h, &options.start.c});
  check_starts("recurrent", starts, x.size(0));
  const Shape wanted{starts.size(0) - 1, w.size(1)};
  for (const Tensor* state : {&options.start.h, &options.start.c}) {
    check_f32("recurrent", "the start", *state);
    check(!*state || state->shape() == wanted, "recurrent: the start is {}; expected {}, a row for every sequence",
          state->shape(), wanted);
  }
  check(!options.start.c || options.cell == Cell::lstm, "recurrent: the start has a c; expected one of LSTM alone");
}

// Which sequences step together: longest first, so that those of a step are the first of those of the step before.
struct Steps {
  std::vector<int64_t> order;   // sequences, longest first; equals as they stand
  std::vector<int64_t> begins;  // of step t in `at`; one more at the end
  Tensor at;                    // i32 (R): rows in the order of steps

  int64_t count() const { return static_cast<int64_t>(begins.size()) - 1; }
  int64_t begin(int64_t t) const { return begins[static_cast<size_t>(t)]; }
  int64_t rows(int64_t t) const { return t < count() ? begin(t + 1) - begin(t) : 0; }
  const int32_t* places(int64_t t) const { return at.view().as<int32_t>() + begin(t); }
};

Steps steps_of(const Tensor& starts, bool reverse) {
  const Tensor flat = dense(starts).to(Device{});
  const int32_t* start = flat.data<int32_t>();
  const auto length = [&](int64_t b) { return start[b + 1] - start[b]; };
  Steps out;
  out.order.resize(static_cast<size_t>(starts.size(0) - 1));
  std::iota(out.order.begin(), out.order.end(), 0);
  std::stable_sort(out.order.begin(), out.order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  out.at = empty({start[starts.size(0) - 1]}, DType::i32);
  int32_t* at = out.at.data<int32_t>();
  out.begins.push_back(0);
  size_t active = out.order.size();
  for (int32_t t = 0;; ++t) {
    while (active > 0 && length(out.order[active - 1]) <= t) --active;
    if (active == 0) return out;
    for (size_t n = 0; n < active; ++n) {
      const int64_t b = out.order[n];
      *at++ = reverse ? start[b + 1] - 1 - t : start[b] + t;
    }
    out.begins.push_back(out.begins.back() + static_cast<int64_t>(active));
  }
}

// Rows in the order of the steps, and back; of `like`'s device.
Tensor ordered(const Tensor& rows, const std::vector<int64_t>& order, int64_t width, const Tensor& like) {
  const auto count = static_cast<int64_t>(order.size());
  if (!rows) return zeros_on(like, {count, width});
  const Tensor from = dense(rows), out = empty_like(from);
  std::vector<Tensor> held;
  const int64_t* list = detail::placed(order, out.device(), held);
  run(&Table::take_rows, {.x = from.view(), .y = out.view(), .rows = list, .count = count}, out);
  return out;
}
Tensor restored(const Tensor& rows, const std::vector<int64_t>& order) {
  const Tensor out = empty_like(rows);
  std::vector<Tensor> held;
  const int64_t* list = detail::placed(order, out.device(), held);
  run(&Table::put_rows, {.x = rows.view(), .y = out.view(), .rows = list, .count = static_cast<int64_t>(order.size())},
      out);
  return out;
}

// A matrix laid out once for the products of all steps.
class StepProduct {
 public:
  // w (K, N); with few steps it is read where it lies.
  StepProduct(const Tensor& w, int64_t steps) : w_(w) {
    if (steps < 2) return;
    int64_t bytes = 0;
    run(&Table::gemm_pack, {.w = w.view(), .bytes = &bytes}, w);
    words_ = empty_on(w, {bytes}, DType::u8);
    if (bytes > 0) run(&Table::gemm_pack, {.w = w.view(), .packed = words_.view().data}, w);
  }
  // y = a · w, or y += a · w.
  void operator()(const Tensor& a, const Tensor& y, bool adds) const {
    kernels::GemmArgs args{.a = a.view(), .n = w_.size(1), .k = w_.size(0), .y = y.view()};
    if (words_) {
      args.packed = words_.view().data;
    } else {
      args.w = w_.view();
    }
    if (adds) args.residual = y.view();
    if (y.count() > 0) run(&Table::gemm, args, a);
  }

 private:
  Tensor w_, words_;
};

struct SavedSteps {
  Cell cell;
  Steps steps;
  Tensor w;         // what the products read of it
  Tensor gates;     // (R, G · H), by steps, as what follows
  Tensor operands;  // (R, H) in the type of the products: the state before
  Tensor kept;      // (R, H) of lstm and gru
  bool has_bias;

  int64_t width() const { return w.size(1); }
};

float* row(const Tensor& x, int64_t at) { return x ? x.view().as<float>() + at * x.size(1) : nullptr; }

// Without `saved`, one block of rows serves every step.
RecurrentResult forward(const Tensor& x, const RecurrentWeights& weights, const RecurrentOptions& options,
                        const Steps& steps, SavedSteps* saved) {
  const int64_t width = weights.w.size(1), all = weights.w.size(0), most = steps.rows(0);
  const bool packed = weights.packed && saved == nullptr, lstm = options.cell == Cell::lstm;
  const Tensor w = weights.copy ? weights.copy.detach() : weights.w.detach(), inputs = dense(x);
  const DType type = packed ? weights.packed.dtype() : w.dtype();
  const Tensor bias = weights.bias ? dense(weights.bias) : Tensor();
  const Tensor h = ordered(options.start.h, steps.order, width, x),
               c = lstm ? ordered(options.start.c, steps.order, width, x) : Tensor();
  const int64_t rows = saved != nullptr ? x.size(0) : most;
  const Tensor gates = packed ? Tensor() : empty_on(x, {rows, all}), operands = empty_on(x, {rows, width}, type);
  const Tensor kept = saved != nullptr && gates_of(options.cell) > 1 ? empty_on(x, {rows, width}) : Tensor();
  const Tensor y = empty_on(x, {x.size(0), width});
  if (most > 0) operands.slice(0, 0, most).copy_from(h.slice(0, 0, most));
  const std::optional<StepProduct> product =
      packed ? std::nullopt : std::optional<StepProduct>(std::in_place, w.transpose(0, 1), steps.count());
  for (int64_t t = 0; t < steps.count(); ++t) {
    const int64_t n = steps.rows(t), begin = saved != nullptr ? steps.begin(t) : 0;
    const Tensor operand = operands.slice(0, begin, begin + n);
    const Tensor here =
        packed ? matmul(operand, weights.packed, {.result = DType::f32}) : gates.slice(0, begin, begin + n);
    if (product) (*product)(operand, here, false);
    const int64_t next = saved != nullptr ? begin + n : 0;
    run(&Table::recurrent_forward,
        {.cell = kernel_cell(options.cell),
         .rows = n,
         .width = width,
         .at = steps.places(t),
         .x = inputs.view().as<float>(),
         .bias = bias ? bias.view().as<float>() : nullptr,
         .gates = here.view().as<float>(),
         .h = h.view().as<float>(),
         .c = lstm ? c.view().as<float>() : nullptr,
         .y = y.view().as<float>(),
         .operand = operands.slice(0, next, next + steps.rows(t + 1)).view().data,
         .next = steps.rows(t + 1),
         .operand_type = type,
         .kept = row(kept, begin)},
        x);
  }
  if (saved != nullptr) *saved = {options.cell, steps, w, gates, operands, kept, static_cast<bool>(bias)};
  return {y, {restored(h, steps.order), lstm ? restored(c, steps.order) : Tensor()}};
}

// Gradients of x, w, bias, and the start from those of y and the end.
Grads backward(const SavedSteps& saved, const std::vector<Tensor>& dys) {
  const Steps& steps = saved.steps;
  const int64_t width = saved.width(), all = saved.w.size(0), rows = saved.gates.size(0);
  const bool lstm = saved.cell == Cell::lstm;
  const Tensor dy = dys[0] ? dense(dys[0]) : Tensor();
  const Tensor dh = ordered(dys[1], steps.order, width, saved.w),
               dc = lstm ? ordered(dys[2], steps.order, width, saved.w) : Tensor();
  const Tensor dx = empty_on(saved.w, {rows, all}), dproducts = empty_on(saved.w, {rows, all}, saved.w.dtype());
  const StepProduct product(saved.w, steps.count());
  for (int64_t t = steps.count() - 1; t >= 0; --t) {
    const int64_t n = steps.rows(t), begin = steps.begin(t);
    const Tensor here = dproducts.slice(0, begin, begin + n);
    run(&Table::recurrent_backward,
        {.cell = kernel_cell(saved.cell),
         .rows = n,
         .width = width,
         .at = steps.places(t),
         .gates = row(saved.gates, begin),
         .kept = row(saved.kept, begin),
         .before = saved.operands.slice(0, begin, begin + n).view().data,
         .dy = dy ? dy.view().as<float>() : nullptr,
         .dh = dh.view().as<float>(),
         .dc = lstm ? dc.view().as<float>() : nullptr,
         .dx = dx.view().as<float>(),
         .dproducts = here.view().data,
         .type = saved.w.dtype()},
        saved.w);
    product(here, dh.slice(0, 0, n), saved.cell == Cell::gru);
  }
  Grads out{dx,
            matmul(dproducts.transpose(0, 1), saved.operands, {.result = DType::f32}),
            {},
            restored(dh, steps.order),
            lstm ? restored(dc, steps.order) : Tensor()};
  if (saved.has_bias) out[2] = detail::run_reduce(dproducts, {true, false}, false).reshape({all});
  return out;
}

}  // namespace

RecurrentResult recurrent(const Tensor& x, const Tensor& starts, const RecurrentWeights& weights,
                          const RecurrentOptions& options) {
  check_call(x, starts, weights, options);
  const std::vector<Tensor> inputs{x, weights.w, weights.bias, options.start.h, options.start.c};
  Steps steps = steps_of(starts, options.reverse);
  steps.at = steps.at.to(x.device());
  if (!recording(inputs)) return forward(x, weights, options, steps, nullptr);

  SavedSteps saved;
  const RecurrentResult out = forward(x, weights, options, steps, &saved);
  std::vector<Tensor> ys{out.y, out.end.h};
  if (out.end.c) ys.push_back(out.end.c);
  ys = record("recurrent", ys, inputs,
              [saved = std::move(saved)](const std::vector<Tensor>& dys) { return backward(saved, dys); });
  return {ys[0], {ys[1], out.end.c ? ys[2] : Tensor()}};
}

Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& w, const Tensor& starts) {
  check(q.rank() == 2 && k.rank() == 2 && w.rank() == 1 && q.size(1) == w.size(0) && k.size(1) == w.size(0),
        "additive_scores: widths do not fit; expected q (B, A), k (R, A) and w (A); q is {}, k is {}, w is {}",
        q.shape(), k.shape(), w.shape());
  for (const auto& [what, given] : {std::pair{"q", q}, {"k", k}, {"w", w}}) check_f32("additive_scores", what, given);
  check_starts("additive_scores", starts, k.size(0));
  detail::check_devices("additive_scores", {&q, &k, &w});
  check(starts.size(0) == q.size(0) + 1, "additive_scores: starts is {}; expected [{}]; q is {}", starts.shape(),
        q.size(0) + 1, q.shape());

  const Tensor s = empty_on(q, {k.size(0)}), queries = dense(q), keys = dense(k), weights = dense(w),
               begins = dense(starts).to(q.device());
  run(&Table::additive_forward,
      {.sequences = q.size(0),
       .width = w.size(0),
       .starts = begins.view().as<int32_t>(),
       .q = queries.view().as<float>(),
       .k = keys.view().as<float>(),
       .w = weights.view().as<float>(),
       .s = s.view().as<float>()},
      q);

  return record("additive_scores", s, {q, k, w}, [queries, keys, weights, begins](const Tensor& ds) {
    const Tensor d = dense(ds), dq = empty_like(queries), dk = empty_like(keys), dw = empty_like(queries);
    run(&Table::additive_backward,
        {.sequences = queries.size(0),
         .width = weights.size(0),
         .starts = begins.view().as<int32_t>(),
         .q = queries.view().as<float>(),
         .k = keys.view().as<float>(),
         .w = weights.view().as<float>(),
         .ds = d.view().as<float>(),
         .dq = dq.view().as<float>(),
         .dk = dk.view().as<float>(),
         .dw = dw.view().as<float>()},
        queries);
    return Grads{dq, dk, detail::run_reduce(dw, {true, false}, false).reshape(weights.shape())};
  });
}

}  // namespace mh
