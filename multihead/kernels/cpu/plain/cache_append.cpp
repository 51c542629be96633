// Stores rows in a cache, quantised where it holds i8.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "multihead/base/parallel.h"
#include "multihead/kernels/cpu/plain/plain.h"
#include "multihead/kernels/kv_cache.h"

namespace mh::kernels {
namespace {

constexpr int64_t kMostWidth = 512;

// round(x / scale) with scale = max|x| / 127; a row with a NaN or an infinity reads back as NaN.
float quantise(const float* x, int64_t width, int8_t* to) {
  float largest = 0;
  bool finite = true;
  for (int64_t d = 0; d < width; ++d) {
    finite = finite && std::isfinite(x[d]);
    largest = std::max(largest, std::abs(x[d]));
  }
  if (!finite) {
    std::fill(to, to + width, int8_t{1});
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float scale = largest / 127.0f;
  for (int64_t d = 0; d < width; ++d) {
    const float steps = scale == 0 ? 0.0f : std::nearbyint(x[d] / scale);
    to[d] = static_cast<int8_t>(std::clamp(steps, -127.0f, 127.0f));
  }
  return scale;
}

struct Row {
  int64_t entry, head, at;  // where in the cache
};

// Row t of batch entry n of `from` into the cache, in the cache's type.
void store_row(const View& from, int64_t n, int64_t t, const View& to, const View& scales, const Row& row) {
  const int64_t width = from.size[3];
  if (from.dtype == to.dtype && from.stride[3] == 1) {
    const int64_t element = size_of(to.dtype);
    const int64_t source = n * from.stride[0] + row.head * from.stride[1] + t * from.stride[2];
    const int64_t place = row.entry * to.stride[0] + row.head * to.stride[1] + row.at * to.stride[2];
    std::memcpy(static_cast<char*>(to.data) + place * element, static_cast<const char*>(from.data) + source * element,
                static_cast<size_t>(width * element));
    return;
  }
  float widened[kMostWidth];
  visit_float("kv_cache", from.dtype, [&]<class T>() {
    const T* x = from.at<T>(n, row.head, t);
    for (int64_t d = 0; d < width; ++d) widened[d] = static_cast<float>(x[d * from.stride[3]]);
  });
  if (to.dtype == DType::i8) {
    *scales.at<float>(row.entry, row.head, row.at) =
        quantise(widened, width, to.at<int8_t>(row.entry, row.head, row.at));
    return;
  }
  visit_float("kv_cache", to.dtype, [&]<class T>() {
    T* y = to.at<T>(row.entry, row.head, row.at);
    for (int64_t d = 0; d < width; ++d) y[d] = static_cast<T>(widened[d]);
  });
}

}  // namespace

void plain::cache_append(const CacheAppendArgs& args, Queue&) {
  const int64_t heads = args.k.size[1], count = args.k.size[2], page = args.page;
  parallel_for(args.count * heads, [&](int64_t task) {
    const int64_t n = task / heads, b = args.sequences[n];
    for (int64_t t = 0; t < count; ++t) {
      const int64_t j = args.lengths[n] + t;
      Row row{b, task % heads, j};
      if (args.pages) row = {*args.pages.at<int32_t>(b, j / page), task % heads, j % page};
      store_row(args.k, n, t, args.keys, args.key_scales, row);
      store_row(args.v, n, t, args.values, args.value_scales, row);
    }
  });
}

}  // namespace mh::kernels
