// ALiBi and T5 biases over distances, forward and backward.
#include "multihead/kernels/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/kernels/cpu/plain/plain.h"

namespace mh::kernels {

int64_t t5_bucket(const T5Buckets& buckets, int64_t d) {
  int64_t base = 0;
  int64_t count = buckets.count;
  if (buckets.bidirectional) {
    count /= 2;
    if (d < 0) base = count;
    d = std::abs(d);
  } else {
    d = std::max<int64_t>(d, 0);
  }
  const int64_t exact = count / 2;
  if (d < exact) return base + d;
  const float ratio =
      std::log(static_cast<float>(d) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(buckets.max_distance) / static_cast<double>(exact)));
  const float far = std::min(ratio * static_cast<float>(count - exact), static_cast<float>(count));
  return base + std::min(exact + static_cast<int64_t>(far), count - 1);
}

namespace plain {

namespace {

void alibi_forward(const View& slopes, Distances distances, float* relative) {
  parallel_for(slopes.size[0], [&](int64_t h) {
    const double slope = *slopes.at<float>(h);
    float* out = relative + h * distances.count;
    for (int64_t n = 0; n < distances.count; ++n) {
      out[n] = static_cast<float>(-slope * static_cast<double>(std::abs(distances.min + n)));
    }
  });
}

void alibi_backward(const float* drelative, Distances distances, const View& dslopes) {
  parallel_for(dslopes.size[0], [&](int64_t h) {
    const float* in = drelative + h * distances.count;
    double sum = 0;
    for (int64_t n = 0; n < distances.count; ++n) {
      sum -= static_cast<double>(std::abs(distances.min + n)) * static_cast<double>(in[n]);
    }
    *dslopes.at<float>(h) = static_cast<float>(sum);
  });
}

void t5_forward(const View& table, const T5Buckets& buckets, Distances distances, float* relative) {
  std::vector<int32_t> bucket(static_cast<size_t>(distances.count));
  for (int64_t n = 0; n < distances.count; ++n) {
    bucket[n] = static_cast<int32_t>(t5_bucket(buckets, distances.min + n));
  }
  parallel_for(table.size[1], [&](int64_t h) {
    float* out = relative + h * distances.count;
    for (int64_t n = 0; n < distances.count; ++n) out[n] = *table.at<float>(bucket[n], h);
  });
}

void t5_backward(const float* drelative, const T5Buckets& buckets, Distances distances, const View& dtable) {
  parallel_for(dtable.size[1], [&](int64_t h) {
    std::vector<double> sums(static_cast<size_t>(buckets.count));
    const float* in = drelative + h * distances.count;
    for (int64_t n = 0; n < distances.count; ++n) sums[t5_bucket(buckets, distances.min + n)] += in[n];
    for (int64_t n = 0; n < buckets.count; ++n) *dtable.at<float>(n, h) = static_cast<float>(sums[n]);
  });
}

}  // namespace

void relative_bias_forward(const RelativeBiasForwardArgs& args, Queue&) {
  if (args.slopes) {
    alibi_forward(args.slopes, args.distances, args.relative);
  } else {
    t5_forward(args.table, args.buckets, args.distances, args.relative);
  }
}

void relative_bias_backward(const RelativeBiasBackwardArgs& args, Queue&) {
  if (args.dslopes) {
    alibi_backward(args.drelative, args.distances, args.dslopes);
  } else {
    t5_backward(args.drelative, args.buckets, args.distances, args.dtable);
  }
}

}  // namespace plain

}  // namespace mh::kernels
