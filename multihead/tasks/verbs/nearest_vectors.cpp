// Products of blocks of rows with all queries, and the best of each so far.
#include "multihead/tasks/verbs/nearest_vectors.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/ops/products/matmul.h"

namespace mh {

namespace {

constexpr int64_t kRowsComparedAtOnce = 16384;

// Products first; NaN comes last.
bool is_nearer(const NearVector& a, const NearVector& b) {
  if (std::isnan(a.score) != std::isnan(b.score)) return std::isnan(b.score);
  return a.score > b.score || (!(a.score < b.score) && a.row < b.row);
}

}  // namespace

Tensor unit_rows(const Tensor& vectors) {
  Tensor out = vectors.clone().contiguous();
  const int64_t width = out.size(1);
  for (int64_t n = 0; n < out.size(0); ++n) {
    float* row = out.data<float>() + n * width;
    double sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += double{row[c]} * row[c];
    if (sum == 0) continue;
    const double length = std::sqrt(sum);
    for (int64_t c = 0; c < width; ++c) row[c] = static_cast<float>(row[c] / length);
  }
  return out;
}

std::vector<std::vector<NearVector>> nearest_vectors(const Tensor& vectors, const Tensor& queries, int64_t k) {
  check(vectors.rank() == 2 && queries.rank() == 2 && vectors.size(1) == queries.size(1) && k >= 1,
        "nearest_vectors: k is {}, vectors {}, queries {}; expected k of 1 or more, and rows of one width", k,
        vectors.shape(), queries.shape());
  const PackedWeights packed = prepack(queries.transpose(0, 1));
  const auto most = static_cast<size_t>(std::min(k, vectors.size(0)));
  std::vector<std::vector<NearVector>> best(static_cast<size_t>(queries.size(0)));
  for (int64_t begin = 0; begin < vectors.size(0); begin += kRowsComparedAtOnce) {
    const int64_t end = std::min(vectors.size(0), begin + kRowsComparedAtOnce);
    const Tensor products = matmul(vectors.slice(0, begin, end), packed);
    parallel_for(queries.size(0), [&](int64_t q) {
      std::vector<NearVector>& kept = best[static_cast<size_t>(q)];
      for (int64_t n = begin; n < end; ++n) {
        const NearVector one{n, products.data<float>()[(n - begin) * queries.size(0) + q]};
        if (kept.size() == most && !is_nearer(one, kept.front())) continue;
        if (kept.size() == most) {
          std::pop_heap(kept.begin(), kept.end(), is_nearer);
          kept.pop_back();
        }
        kept.push_back(one);
        std::push_heap(kept.begin(), kept.end(), is_nearer);  // the farthest in front
      }
    });
  }
  for (std::vector<NearVector>& kept : best) std::sort_heap(kept.begin(), kept.end(), is_nearer);
  return best;
}

}  // namespace mh
