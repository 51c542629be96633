// The composed forward pass, the weights, and the statistics: all read the scores row by row.
#include <algorithm>
#include <cmath>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/kernels/composed_attention.h"
#include "multihead/kernels/cpu/plain/composed_rows.h"
#include "multihead/kernels/cpu/plain/plain.h"

namespace mh::kernels::plain {
namespace {

// Keys whose products are summed before they join the total: keeps the error of long sums down.
constexpr int64_t kSumBlock = 64;

// What a row sums to. `empty`: no pair is kept.
struct RowSum {
  float max = kDropped;
  double sum = 0;
  bool empty = true;

  float log_sum_exp() const { return sum == 0 ? kDropped : static_cast<float>(max + std::log(sum)); }
};

RowSum sum_row(const float* s, int64_t keys, const float* sink) {
  RowSum row;
  if (sink) row.max = *sink;
  for (int64_t j = 0; j < keys; ++j) {
    if (s[j] == kDropped) continue;
    row.empty = false;
    row.max = std::max(row.max, s[j]);
  }
  if (row.empty && row.max == kDropped) return row;
  if (sink) row.sum = std::exp(static_cast<double>(*sink - row.max));
  for (int64_t j = 0; j < keys; ++j) {
    if (s[j] != kDropped) row.sum += std::exp(s[j] - row.max);
  }
  return row;
}

void add_values(const float* weights, const float* scores, const float* v, int64_t keys, int64_t width, float* o) {
  std::vector<float> block(static_cast<size_t>(width));
  std::fill(o, o + width, 0.0f);
  for (int64_t begin = 0; begin < keys; begin += kSumBlock) {
    std::fill(block.begin(), block.end(), 0.0f);
    for (int64_t j = begin; j < std::min(begin + kSumBlock, keys); ++j) {
      if (scores[j] == kDropped) continue;
      for (int64_t d = 0; d < width; ++d) block[d] += weights[j] * v[j * width + d];
    }
    for (int64_t d = 0; d < width; ++d) o[d] += block[d];
  }
}

// visit(b, sequence, first, count) once the rows of each chunk are computed.
template <class Args, class Visit>
void for_each_chunk(ComposedRows& rows, const Args& args, bool with_values, Visit&& visit) {
  for (int64_t b = 0; b < args.sequences.count; ++b) {
    const Sequence& sequence = args.sequences.data[b];
    if (sequence.q_len == 0) continue;
    rows.begin(b, sequence, with_values);
    const int64_t step = rows.rows_at_once();
    for (int64_t first = 0; first < sequence.q_len; first += step) {
      const int64_t count = std::min(step, sequence.q_len - first);
      rows.compute(first, count);
      visit(b, sequence, first, count);
    }
  }
}

// p = exp(s - lse), 0 where dropped.
void weights_of(const float* s, int64_t keys, float lse, float* p) {
  for (int64_t j = 0; j < keys; ++j) p[j] = s[j] == kDropped ? 0.0f : std::exp(s[j] - lse);
}

void clear(const View& view) {
  if (!view) return;
  for (int64_t a = 0; a < view.size[0]; ++a) {
    for (int64_t b = 0; b < view.size[1]; ++b) {
      for (int64_t c = 0; c < view.size[2]; ++c) {
        for (int64_t d = 0; d < view.size[3]; ++d) *view.at<int32_t>(a, b, c, d) = view.dtype == DType::i32 ? -1 : 0;
      }
    }
  }
}

void write_top(const AttentionStatisticsArgs& args, const float* s, const float* p, int64_t keys,
               const int64_t (&at)[3]) {
  const int64_t n = args.top_keys ? args.top_keys.size[3] : args.top_weights.size[3];
  std::vector<int64_t> order;
  for (int64_t j = 0; j < keys; ++j) {
    if (s[j] != kDropped) order.push_back(j);
  }
  const int64_t top = std::min<int64_t>(n, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + top, order.end(),
                    [&](int64_t a, int64_t b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
  for (int64_t t = 0; t < top; ++t) {
    if (args.top_keys) *args.top_keys.at<int32_t>(at[0], at[1], at[2], t) = static_cast<int32_t>(order[t]);
    if (args.top_weights) *args.top_weights.at<float>(at[0], at[1], at[2], t) = p[order[t]];
  }
}

void write_row(const AttentionStatisticsArgs& args, const float* s, const float* p, int64_t keys,
               const int64_t (&at)[3], int64_t position, float lse) {
  double entropy = 0, distance = 0;
  for (int64_t j = 0; j < keys; ++j) {
    if (s[j] == kDropped || p[j] == 0) continue;
    entropy -= static_cast<double>(p[j]) * (static_cast<double>(s[j]) - lse);
    distance += static_cast<double>(p[j]) * static_cast<double>(std::abs(position - j));
  }
  if (args.scores.sink) {
    const double log_share = static_cast<double>(args.scores.sink[at[1]]) - lse;
    if (std::exp(log_share) > 0) entropy -= std::exp(log_share) * log_share;
  }
  if (args.entropy) *args.entropy.at<float>(at[0], at[1], at[2]) = static_cast<float>(entropy);
  if (args.distance) *args.distance.at<float>(at[0], at[1], at[2]) = static_cast<float>(distance);
  if (args.top_keys || args.top_weights) write_top(args, s, p, keys, at);
}

}  // namespace

void composed_forward(const ComposedForwardArgs& whole, Queue&) {
  const AttentionForwardArgs& args = whole.call;
  ComposedRows rows(args.q, args.kv, args.scores, whole.mixing);
  for_each_chunk(rows, args, true, [&](int64_t, const Sequence& sequence, int64_t first, int64_t count) {
    parallel_for(args.q.size[1] * count, [&](int64_t task) {
      const int64_t h = task / count, r = task % count, keys = rows.keys(), width = args.kv.v.size[3];
      const float* s = rows.scores(h, r);
      const RowSum row = sum_row(s, keys, args.scores.sink ? args.scores.sink + h : nullptr);
      const int64_t at = sequence.q_begin + first + r;
      if (args.lse) *args.lse.at<float>(sequence.batch, h, at) = row.log_sum_exp();
      std::vector<float> weights(static_cast<size_t>(keys)), o(static_cast<size_t>(width));
      if (!row.empty) {
        for (int64_t j = 0; j < keys; ++j) {
          weights[j] = s[j] == kDropped ? 0.0f : static_cast<float>(std::exp(s[j] - row.max) / row.sum);
        }
        if (rows.has_dropout()) {
          std::vector<float> factors(static_cast<size_t>(keys));
          rows.dropout_factors(h, r, factors.data());
          for (int64_t j = 0; j < keys; ++j) weights[j] *= factors[j];
        }
        add_values(weights.data(), s, rows.value_rows().rows.data() + rows.key_head(h) * keys * width, keys, width,
                   o.data());
      }
      narrow(o.data(), width, args.o, sequence.batch * args.o.stride[0] + h * args.o.stride[1] + at * args.o.stride[2]);
    });
  });
}

void composed_weights(const ComposedWeightsArgs& whole, Queue&) {
  const AttentionWeightsArgs& args = whole.call;
  clear(args.weights);
  ComposedRows rows(args.q, args.kv, args.scores, whole.mixing);
  for_each_chunk(rows, args, false, [&](int64_t b, const Sequence& sequence, int64_t first, int64_t count) {
    for (int64_t n = 0; n < args.row_count; ++n) {
      const int64_t i = args.rows[n];
      if (i < first || i >= first + count) continue;
      for (int64_t m = 0; m < args.head_count; ++m) {
        const int64_t h = args.heads[m];
        const float lse = *args.lse.at<float>(sequence.batch, h, sequence.q_begin + i);
        weights_of(rows.scores(h, i - first), rows.keys(), lse, args.weights.at<float>(b, m, n));
      }
    }
  });
}

void composed_statistics(const ComposedStatisticsArgs& whole, Queue&) {
  const AttentionStatisticsArgs& args = whole.call;
  for (const View& view : {args.entropy, args.top_keys, args.top_weights, args.received, args.distance}) clear(view);
  ComposedRows rows(args.q, args.kv, args.scores, whole.mixing);
  for_each_chunk(rows, args, false, [&](int64_t b, const Sequence& sequence, int64_t first, int64_t count) {
    parallel_for(args.q.size[1], [&](int64_t h) {
      std::vector<float> p(static_cast<size_t>(rows.keys()));
      for (int64_t r = 0; r < count; ++r) {
        const float* s = rows.scores(h, r);
        const int64_t i = first + r;
        const float lse = *args.lse.at<float>(sequence.batch, h, sequence.q_begin + i);
        weights_of(s, rows.keys(), lse, p.data());
        write_row(args, s, p.data(), rows.keys(), {b, h, i}, sequence.position + i, lse);
        for (int64_t j = 0; args.received && j < rows.keys(); ++j) *args.received.at<float>(b, h, j) += p[j];
      }
    });
  });
}

}  // namespace mh::kernels::plain
