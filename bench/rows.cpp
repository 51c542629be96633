// What works on rows: the table of cases, and each made ready to run. All of it should move at the speed of memory.
#include <fmt/format.h>

#include <functional>

#include "bench/run.h"
#include "multihead/autograd/tape.h"
#include "multihead/ops/rows/activation.h"
#include "multihead/ops/rows/cross_entropy.h"
#include "multihead/ops/rows/dropout.h"
#include "multihead/ops/rows/embedding.h"
#include "multihead/ops/rows/layer_norm.h"
#include "multihead/ops/rows/softmax.h"
#include "multihead/ops/update.h"

namespace mh::bench {
namespace {

// A call, and the memory it reads and writes at least once.
struct Work {
  std::function<void()> run;
  std::vector<Tensor> memory;
};

using Op = std::function<Tensor(const std::vector<Tensor>&)>;

// An op on inputs of the shape (R, C).
Work forward(const std::vector<Tensor>& inputs, const Op& op) {
  std::vector<Tensor> memory = inputs;
  memory.push_back(op(inputs));
  return {[=] { op(inputs); }, memory};
}

// Forward on a tape and back: what forward moves, then dy and every input again, and their gradients.
Work and_back(const std::vector<Tensor>& inputs, const Op& op) {
  std::vector<Tensor> traced, memory = inputs;
  for (const Tensor& each : inputs) traced.push_back(parameter(each));
  const Tensor y = op(inputs), dy = randn(y.shape(), 9, y.dtype());
  for (const Tensor& each : {y, dy}) memory.push_back(each);
  for (const Tensor& each : inputs) {
    memory.push_back(each);
    memory.push_back(empty_like(each));
  }
  return {[=] {
            Tape tape;
            Gradients sums;
            tape.backward({op(traced)}, {dy}, sums);
          },
          memory};
}

// Either way, by the name of the case.
Work either(const Case& c, const std::vector<Tensor>& inputs, const Op& op) {
  return c.name.ends_with("+backward") ? and_back(inputs, op) : forward(inputs, op);
}

Work layer_norm_work(const Case& c) {
  const Tensor gamma = randn({c.sizes.Dk}, 2), beta = randn({c.sizes.Dk}, 3);
  return either(c, {randn({c.sizes.Tq, c.sizes.Dk}, 1, c.dtype), gamma, beta},
                [](auto& x) { return layer_norm(x[0], x[1], x[2]); });
}

Work softmax_work(const Case& c) {
  return either(c, {randn({c.sizes.Tq, c.sizes.Dk}, 1, c.dtype)}, [](auto& x) { return softmax(x[0]); });
}

Work dropout_work(const Case& c) {
  const Shape shape{c.sizes.Tq, c.sizes.Dk};
  return either(c, {randn(shape, 1, c.dtype), randn(shape, 2, c.dtype)},
                [](auto& x) { return dropout_add(x[0], x[1], {.p = 0.1f, .seed = 7}); });
}

Work gelu_work(const Case& c) {
  return either(c, {randn({c.sizes.Tq, c.sizes.Dk}, 1, c.dtype)},
                [](auto& x) { return activation(x[0], Activation::gelu); });
}

Tensor classes_of(int64_t rows, int64_t below) {
  const Tensor out = empty({rows}, DType::i32);
  for (int64_t n = 0; n < rows; ++n) out.data<int32_t>()[n] = static_cast<int32_t>(n * 7919 % below);
  return out;
}

Work cross_entropy_work(const Case& c) {
  const Tensor targets = classes_of(c.sizes.Tq, c.sizes.Dk);
  return either(c, {randn({c.sizes.Tq, c.sizes.Dk}, 1, c.dtype)},
                [targets](auto& x) { return cross_entropy(x[0], targets, {.smoothing = 0.1f}).loss; });
}

Work top_k_work(const Case& c) {
  return forward({randn({c.sizes.Tq, c.sizes.Dk}, 1, c.dtype)}, [](auto& x) { return top_k(x[0], 4).values; });
}

// The rows that are taken count, not the table.
Work embedding_work(const Case& c) {
  const Tensor table = randn({8000, c.sizes.Dk}, 1), ids = classes_of(c.sizes.Tq, 8000);
  const EmbeddingOptions options{.scale = 16, .result = c.dtype};
  return {[=] { embedding(table, ids, options); }, {table.slice(0, 0, c.sizes.Tq), embedding(table, ids, options)}};
}

// w, m, v read and written, g read: seven passes.
Work adamw_work(const Case& c) {
  const Shape shape{c.sizes.Tq, c.sizes.Dk};
  const AdamwState state{.w = randn(shape, 1),
                         .m = zeros(shape),
                         .v = zeros(shape),
                         .copy = c.dtype == DType::bf16 ? empty(shape, DType::bf16) : Tensor()};
  const Tensor g = randn(shape, 4);
  std::vector<Tensor> memory{state.w, state.m, state.v, state.w, state.m, state.v, g};
  if (state.copy) memory.push_back(state.copy);
  return {[=] { adamw(state, g, {.rate = 1e-6f}); }, memory};
}

Work squares_work(const Case& c) {
  const Tensor x = randn({c.sizes.Tq, c.sizes.Dk}, 1, c.dtype);
  return {[=] { sum_of_squares(x); }, {x}};
}

struct Kind {
  const char* name;
  int64_t rows, columns;
  Work (*make)(const Case& c);
  bool both_ways;  // also with its way back
};

// Sizes of a step of a small translation model: 1024 tokens of 256 elements, 8000 classes, 7.6 million parameters.
constexpr Kind kKinds[] = {
    {"layer_norm", 1024, 256, layer_norm_work, true},        {"softmax", 1024, 256, softmax_work, true},
    {"dropout_add", 1024, 256, dropout_work, true},          {"gelu", 1024, 1024, gelu_work, true},
    {"cross_entropy", 1024, 8000, cross_entropy_work, true}, {"top_k", 1024, 8000, top_k_work, false},
    {"embedding", 1024, 256, embedding_work, false},         {"adamw", 7600, 1000, adamw_work, false},
    {"sum_of_squares", 7600, 1000, squares_work, false}};

}  // namespace

std::vector<Case> rows_cases(const ThreadChoice& threads) {
  std::vector<Case> cases;
  for (const Kind& kind : kKinds)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const char* suffix : {"", "+backward"})
        for (const int count : threads.counts)
          if (*suffix == '\0' || kind.both_ways)
            cases.push_back({.name = fmt::format("{}{}", kind.name, suffix),
                             .dtype = dtype,
                             .pass = Pass::rows,
                             .sizes = {.Tq = kind.rows, .Dk = kind.columns, .Dv = 0},
                             .threads = count,
                             .quick = dtype == DType::f32 && count == 1,
                             .comparison = {}});
  return cases;
}

Prepared prepare_rows(const Case& c) {
  for (const Kind& kind : kKinds) {
    if (c.name != kind.name && c.name != std::string(kind.name) + "+backward") continue;
    const Work work = kind.make(c);
    Prepared prepared{.subject = {work.run, 0}, .reference = {Bound::plain_read, work.memory}, .unit = "GB/s"};
    for (const Tensor& each : work.memory)
      prepared.subject.work += static_cast<double>(each.count() * size_of(each.dtype()));
    return prepared;
  }
  fail(ErrorKind::invalid_argument, "bench: there is no case {} of rows", c.name);
}

}  // namespace mh::bench
