// embedding: checks, numbers of positions, the dense gradient of a table.
#include "multihead/ops/rows/embedding.h"

#include <numeric>

#include "multihead/autograd/tape.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

using detail::dense;
using detail::rows_of;

void check_table(const char* what, const Tensor& table) {
  detail::check_float("embedding", what, table);
  check(table.rank() == 2, "embedding: {} has rank {}; expected 2, (rows, C); it is {}", what, table.rank(),
        table.shape());
}

// One number per element of ids.
Tensor positions_of(const Tensor& ids, const EmbeddingOptions& options) {
  if (options.position_ids) return dense(options.position_ids.broadcast_to(ids.shape()));
  check(ids.rank() >= 1, "embedding: ids is a scalar and has no positions; expected position_ids");
  std::vector<int32_t> along(static_cast<size_t>(ids.size(-1)));
  std::iota(along.begin(), along.end(), 0);
  return tensor(along, Shape{ids.size(-1)}, ids.device()).broadcast_to(ids.shape()).contiguous();
}

// Rows of dy given back to the rows they came from, in the type of the table; added to `gathered` where there is one.
Tensor scatter(const Tensor& dy, const Tensor& ids, const Tensor& table, float scale, const Tensor& gathered = {}) {
  const Tensor dtable = gathered ? gathered : empty_on(table, table.shape()), rows = rows_of(dy);
  run(&Table::embedding_backward,
      {.dy = rows.view(),
       .ids = ids.view().as<int32_t>(),
       .scale = scale,
       .dtable = dtable.view(),
       .add = static_cast<bool>(gathered)},
      dy);
  return dtable.to(table.dtype());
}

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& ids, const EmbeddingOptions& options) {
  check_table("table", table);
  const DType result = options.result.value_or(table.dtype());
  detail::check_types("embedding", table.dtype(), result);
  detail::check_indices("embedding", "ids", ids, table.size(0));
  const Tensor& positions = options.positions;
  detail::check_devices("embedding", {&table, &positions});
  Tensor places;
  if (positions) {
    check_table("positions", positions);
    check(positions.size(1) == table.size(1) && positions.dtype() == DType::f32,
          "embedding: positions does not fit the table; expected [T, {}] of f32; positions is {} of {}", table.size(1),
          positions.shape(), name(positions.dtype()));
    places = positions_of(ids, options);
    detail::check_indices("embedding", "position_ids", places, positions.size(0));
    places = places.to(table.device());
  }

  Shape shape = ids.shape();
  check(shape.rank() < kMaxRank, "embedding: ids has rank {}; expected at most {}; ids is {}", shape.rank(),
        kMaxRank - 1, shape);
  std::vector<int64_t> sizes;
  for (int axis = 0; axis < shape.rank(); ++axis) sizes.push_back(shape[axis]);
  sizes.push_back(table.size(1));
  const Tensor y = empty_on(table, Shape(sizes), result), numbers = dense(ids).to(table.device());
  if (y.count() > 0) {
    const Tensor from = rows_of(table), to = rows_of(y), added = positions ? rows_of(positions) : Tensor();
    run(&Table::embedding_forward,
        {.table = from.view(),
         .ids = numbers.view().as<int32_t>(),
         .scale = options.scale,
         .positions = added ? added.view() : View{},
         .position_ids = added ? places.view().as<int32_t>() : nullptr,
         .y = to.view()},
        table);
  }

  return record_adding("embedding", y, {table, positions},
                       [table = table.detach(), positions = positions.detach(), wanted = positions.trace() != 0,
                        numbers, places, scale = options.scale](const Tensor& dy, const Tensor& gathered) {
                         return Grads{scatter(dy, numbers, table, scale, gathered),
                                      wanted ? scatter(dy, places, positions, 1) : Tensor()};
                       });
}

}  // namespace mh
