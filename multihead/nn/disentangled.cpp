// Scores of contents with the rows of distances, gathered into a bias.
#include "multihead/nn/disentangled.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/ops/elementwise.h"
#include "multihead/ops/products/matmul.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

// (H · rows · P): of each head, rows (rows, H, D) times the head's part of the table (P, H, D).
Tensor scores(const Tensor& rows, const Tensor& table) {
  std::vector<Tensor> parts;
  const auto head = [](const Tensor& x, int64_t h) { return reshape(slice(x, 1, h, h + 1), {x.size(0), x.size(2)}); };
  for (int64_t h = 0; h < rows.size(1); ++h)
    parts.push_back(reshape(matmul(head(rows, h), transpose(head(table, h), 0, 1), {.result = DType::f32}),
                            {rows.size(0) * table.size(0)}));
  return concat(parts, 0);
}

// i32 (B, H, T, T): where scores() holds pair (i, j); `by_key`: in the row of the key.
Tensor places(const DisentangledRows& rows, const Sequences& at, const Disentangled& options, bool by_key) {
  const int64_t heads = rows.q.size(1), span = options.span(), width = 2 * span, longest = at.longest;
  std::vector<int32_t> column(static_cast<size_t>(std::max<int64_t>(2 * longest - 1, 0)));
  for (int64_t n = 0; n < static_cast<int64_t>(column.size()); ++n)
    column[static_cast<size_t>(n)] =
        static_cast<int32_t>(std::clamp<int64_t>(distance_bucket(n - (longest - 1), options) + span, 0, width - 1));
  const Tensor out = zeros({at.count(), heads, longest, longest}, DType::i32);
  const int32_t* starts = at.starts.data<int32_t>();
  for (int64_t b = 0; b < at.count(); ++b) {
    const int64_t length = starts[b + 1] - starts[b];
    for (int64_t h = 0; h < heads; ++h) {
      int32_t* to = out.data<int32_t>() + (b * heads + h) * longest * longest;
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t j = 0; j < length; ++j) {
          const int64_t row = h * at.rows + starts[b] + (by_key ? j : i);
          to[i * longest + j] = static_cast<int32_t>(row * width + column[static_cast<size_t>(i - j + longest - 1)]);
        }
      }
    }
  }
  return out;
}

}  // namespace

int64_t distance_bucket(int64_t distance, const Disentangled& options) {
  const int64_t middle = options.buckets / 2, far = std::abs(distance);
  if (options.buckets <= 0 || far <= middle) return distance;
  // In f32, as the models were trained: elsewhere the ceiling may fall on another bucket.
  const float share = std::log(static_cast<float>(far) / static_cast<float>(middle)) /
                      std::log(static_cast<float>(options.max_distance - 1) / static_cast<float>(middle));
  const auto bucket = static_cast<int64_t>(std::ceil(share * static_cast<float>(middle - 1))) + middle;
  return distance < 0 ? -bucket : bucket;
}

Tensor disentangled_bias(const DisentangledRows& rows, const Sequences& at, const Disentangled& options) {
  const int64_t heads = rows.q.size(1), most = std::numeric_limits<int32_t>::max();
  if (heads * 2 * options.span() > most / std::max<int64_t>(at.rows, 1))
    fail(ErrorKind::unsupported,
         "disentangled_bias: {} rows, {} heads and {} distances; expected fewer than 2^31 scores at once", at.rows,
         heads, 2 * options.span());
  const int parts = 1 + (rows.position_k ? 1 : 0) + (rows.position_q ? 1 : 0);
  Tensor sum;
  const auto add_part = [&](const Tensor& of, const Tensor& table, bool by_key) {
    if (!table) return;
    const Tensor part = gather(scores(of, table), places(rows, at, options, by_key));
    sum = sum ? add(sum, part) : part;
  };
  add_part(rows.q, rows.position_k, false);
  add_part(rows.k, rows.position_q, true);
  if (!sum) return zeros({1, 1, 1, 1});
  return scale(sum, 1 / std::sqrt(static_cast<float>(rows.q.size(2) * parts)));
}

}  // namespace mh
