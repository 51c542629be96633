// Cases of embedding and gather.
#include "multihead/check/op_case.h"
#include "multihead/ops/rows/embedding.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

const DType kMixing[] = {DType::f32, DType::bf16};

// Numbers with repeats, in no order.
std::vector<int32_t> numbers(int64_t count, int64_t below) {
  std::vector<int32_t> out;
  for (int64_t n = 0; n < count; ++n) out.push_back(static_cast<int32_t>((n * n + 3 * n + 1) % below));
  return out;
}

Numbers taken(const Numbers& table, const std::vector<int32_t>& ids, size_t width, double scale) {
  Numbers y;
  for (const int32_t id : ids) {
    for (size_t c = 0; c < width; ++c) y.push_back(scale * table[static_cast<size_t>(id) * width + c]);
  }
  return y;
}

OpCase plain_case(int64_t rows, int64_t width, int64_t count) {
  const std::vector<int32_t> ids = numbers(count, rows);
  const Tensor wanted = tensor<int32_t>(ids, Shape{count});
  return {.label = fmt::format("embedding {} of [{}, {}]", count, rows, width),
          .inputs = {{Shape{rows, width}}},
          .op = [=](auto& x) { return embedding(x[0], wanted, {.scale = 3}); },
          .reference = [=](auto& x) { return taken(x[0], ids, static_cast<size_t>(width), 3); },
          .terms = count};
}

OpCase position_case(DType result, bool given) {
  const std::vector<int32_t> ids = numbers(8, 6), places = given ? numbers(4, 5) : std::vector<int32_t>{0, 1, 2, 3};
  const Tensor wanted = tensor<int32_t>(ids, Shape{2, 4}), at = tensor<int32_t>(places, Shape{4});
  const EmbeddingOptions options{.scale = 2, .position_ids = given ? at : Tensor(), .result = result};
  return {.label = fmt::format("embedding with {}positions to {}", given ? "given " : "", name(result)),
          .inputs = {{Shape{6, 20}, 0, 1, true}, {Shape{5, 20}, 0, 1, true}},
          .op =
              [=](auto& x) {
                EmbeddingOptions with = options;
                with.positions = x[1];
                return embedding(x[0], wanted, with);
              },
          .reference =
              [=](auto& x) {
                Numbers y = taken(x[0], ids, 20, 2);
                for (size_t n = 0; n < y.size(); ++n)
                  y[n] += x[1][static_cast<size_t>(places[n / 20 % 4]) * 20 + n % 20];
                return y;
              },
          .types = {DType::f32},
          .terms = 8};
}

}  // namespace

std::vector<OpCase> embedding_cases() {
  std::vector<OpCase> cases;
  for (const int64_t width : {1, 15, 16, 17, 70}) cases.push_back(plain_case(7, width, 12));
  cases.push_back(plain_case(3, 8, 0));
  cases.push_back(plain_case(3, 0, 4));
  for (const DType result : kMixing) {
    cases.push_back(position_case(result, true));
    cases.push_back(position_case(result, false));
  }
  const std::vector<int32_t> ids = numbers(6, 4);
  cases.push_back({.label = "gather entries of rank 2",
                   .inputs = {{Shape{4, 3, 5}}},
                   .op =
                       [ids](auto& x) {
                         return gather(x[0], tensor<int32_t>(ids, Shape{2, 3}));
                       },
                   .reference = [ids](auto& x) { return taken(x[0], ids, 15, 1); },
                   .terms = 6});
  return cases;
}

}  // namespace mh
