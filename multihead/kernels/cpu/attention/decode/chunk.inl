// One task of decode: the rows of a key head against the keys of one chunk.
#pragma once

#include "multihead/kernels/cpu/attention/decode/add.inl"
#include "multihead/kernels/cpu/attention/decode/dot.inl"
#include "multihead/kernels/cpu/attention/decode/rows.inl"
#include "multihead/kernels/cpu/attention/decode/scores.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/vector_math.inl"

namespace decode {

using DotRun = decltype(&dot_run<float>);
using AddRun = decltype(&add_run<float>);
using RowsFinite = decltype(&rows_finite<float>);

inline DotRun dot_run_of(DType t) {
  switch (t) {
    case DType::bf16: return dot_run<bf16>;
    case DType::f16: return dot_run<f16>;
    case DType::i8: return dot_run<int8_t>;
    default: return dot_run<float>;
  }
}

inline AddRun add_run_of(DType t) {
  switch (t) {
    case DType::bf16: return add_run<bf16>;
    case DType::f16: return add_run<f16>;
    case DType::i8: return add_run<int8_t>;
    default: return add_run<float>;
  }
}

inline RowsFinite rows_finite_of(DType t) {
  switch (t) {
    case DType::bf16: return rows_finite<bf16>;
    case DType::f16: return rows_finite<f16>;
    case DType::i8: return nullptr;
    default: return rows_finite<float>;
  }
}

template <class T>
void read_query(const T* q, const RowShape& shape, float* to) {
  int64_t d = 0;
  for (; d + kLanes <= in_place(shape); d += kLanes) hn::Store(load_widened(q + d), f32, to + d);
  for (; d < shape.width; ++d) to[place_of(shape, d)] = widen(q[d]);
}

inline void query_row(const View& q, int64_t at, const RowShape& shape, float* to) {
  if (q.dtype == DType::f32) read_query(static_cast<const float*>(q.data) + at, shape, to);
  if (q.dtype == DType::bf16) read_query(static_cast<const bf16*>(q.data) + at, shape, to);
  if (q.dtype == DType::f16) read_query(static_cast<const f16*>(q.data) + at, shape, to);
}

// What all tasks of a call share. A partial is o (rows, padded width), then each row's max and sum.
struct DecodePlan {
  RowShape k, v;
  DotRun dot = nullptr;
  AddRun add = nullptr;
  RowsFinite finite = nullptr;  // null: an i8 cache holds nothing else
  // A row of q as `dot` wants it, in plan.k.padded() floats; what `add` wants made of the weights of a block (null:
  // nothing); and o from what it adds up in three integers for each element (null: it adds to o itself).
  void (*query)(const View& q, int64_t at, const RowShape& shape, float* to) = nullptr;
  void (*weights)(int64_t keys, float* p) = nullptr;
  void (*gather)(const RowShape& shape, const float* p, const int32_t* sums, float* o) = nullptr;
  bool marks = false;   // masks beyond the reach of a row
  bool plain = false;   // nothing between q · k and the softmax: attention/decode/short.inl
  int64_t partial = 0;  // floats
};

// visit(run, n) for the rows of keys [from, to) of x (k, v or their scales), cut where pages end; n counts from `from`.
template <class Visit>
HWY_INLINE void visit_runs(const DecodeUnit& u, const View& x, int64_t from, int64_t to, const Visit& visit) {
  const int64_t element = size_of(x.dtype), stride = x.stride[2] * element;
  const char* base = static_cast<const char*>(x.data) + u.key_head * x.stride[1] * element;
  const View& pages = u.args->kv.pages;
  if (!pages) {
    base += u.sequence->batch * x.stride[0] * element + (u.sequence->k_begin + from) * stride;
    visit(Run{base, stride, to - from}, int64_t{0});
    return;
  }
  const int32_t* table = static_cast<const int32_t*>(pages.data) + u.b * pages.stride[0];
  const int64_t page = x.size[2];
  for (int64_t j = from; j < to;) {
    const int64_t within = j % page, end = smaller(to, j - within + page);
    const char* first = base + table[j / page * pages.stride[1]] * x.stride[0] * element;
    visit(Run{first + within * stride, stride, end - j}, j - from);
    j = end;
  }
}

// One task: the rows of a unit against the keys of one chunk.
class DecodeChunk {
 public:
  DecodeChunk(const DecodePlan& plan, const DecodeUnit& unit, Scratch& scratch, float* partial)
      : plan_(plan), u_(unit), o_(partial) {
    const int64_t width = plan.k.padded();
    q_ = scratch.take<float>(u_.rows * width);
    s_ = scratch.take<float>(u_.rows * kStrip);
    keep_ = scratch.take<uint8_t>(u_.rows * kDecodeBlock);
    if (plan.gather) sums_ = scratch.take<int32_t>(u_.rows * 3 * plan.v.padded());
    room_ = scratch.take<char>(kDecodeBlock * 2 * kLanes * 4);
    memset(q_, 0, static_cast<size_t>(u_.rows * width) * sizeof(float));
    for (int64_t r = 0; r < u_.rows; ++r) read_row(r, q_ + r * width);
    memset(o_, 0, static_cast<size_t>(u_.rows * plan.v.padded()) * sizeof(float));
    mark_new_lanes(plan.k, head_);
  }

  void run(KeyRange chunk) {
    KeyRange reach = {chunk.end, chunk.begin};
    for (int64_t r = 0; r < u_.rows; ++r) {
      reach.begin = smaller(reach.begin, larger(chunk.begin, u_.row[r].keys.begin));
      reach.end = larger(reach.end, smaller(chunk.end, u_.row[r].keys.end));
    }
    for (int64_t j = reach.begin; j < reach.end;) {
      const int64_t end = block_end(j, reach.end);
      block(j, end - j, reach.end);
      j = end;
    }
    float* state = o_ + u_.rows * plan_.v.padded();
    for (int64_t r = 0; r < u_.rows; ++r) {
      state[r] = row_[r].max;
      state[u_.rows + r] = row_[r].sum;
    }
  }

 private:
  // The lanes of the overlapping last unit that the one before does not hold, as bits.
  static void mark_new_lanes(const RowShape& shape, float* lanes) {
    const uint32_t all = ~0u;
    memset(lanes, 0, kMostUnit * sizeof(float));
    for (int64_t d = shape.full * shape.unit; d < shape.width; ++d) {
      memcpy(lanes + place_of(shape, d) % shape.unit, &all, sizeof all);
    }
  }

  static int64_t block_end(int64_t j, int64_t end) { return smaller(end, (j / kDecodeBlock + 1) * kDecodeBlock); }

  void read_row(int64_t r, float* to) {
    const View& q = u_.args->q;
    const int64_t at = offset_of(q, u_.sequence->batch, u_.row[r].head, u_.sequence->q_begin + u_.row[r].query, 0);
    plan_.query(q, at, plan_.k, to);
  }

  void block(int64_t j, int64_t keys, int64_t end) {
    int64_t kept = 0;
    for (int64_t r = 0; r < u_.rows; ++r) {
      const KeyRange reach = u_.row[r].keys;
      whole_[r] = !plan_.marks && reach.begin <= j && j + keys <= reach.end;
      kept += whole_[r] ? keys : mark_kept(u_, r, j, keys, keep_ + r * kDecodeBlock);
    }
    if (kept == 0) return;

    const KeyValues& kv = u_.args->kv;
    const bool quantised = static_cast<bool>(kv.k_scale);
    if (quantised) {
      read_scales(kv.k_scale, j, keys, key_scale_);
      read_scales(kv.v_scale, j, keys, value_scale_);
    }
    fetch_start(kv.v, j);
    visit_runs(u_, kv.k, j, j + keys, [&](const Run& run, int64_t n) {
      plan_.dot(plan_.k, widened(plan_.k, run), q_, u_.rows, head_, s_ + n);
    });

    bool dropped = false;
    float shrink[kDecodeMostRows];
    for (int64_t r = 0; r < u_.rows; ++r) {
      float* s = s_ + r * kStrip;
      const uint8_t* keep = whole_[r] ? nullptr : keep_ + r * kDecodeBlock;
      finish_scores(u_, r, j, keys, quantised ? key_scale_ : nullptr, keep, s);
      dropped |= note_dropped(r, keys);
      shrink[r] = row_[r].take(s, keys);
      if (quantised) weigh(r, keys);
      if (plan_.weights) plan_.weights(keys, s);
    }
    shrink_rows(shrink, u_.rows, plan_.v.padded(), o_);
    if (j + keys < end) fetch_start(kv.k, j + keys);
    const int64_t width = plan_.v.padded();
    if (sums_) memset(sums_, 0, static_cast<size_t>(u_.rows * 3 * width) * sizeof(int32_t));
    visit_runs(u_, kv.v, j, j + keys, [&](const Run& run, int64_t n) { add(widened(plan_.v, run), n, dropped); });
    for (int64_t r = 0; sums_ && r < u_.rows; ++r) {
      plan_.gather(plan_.v, s_ + r * kStrip, sums_ + r * 3 * width, o_ + r * width);
    }
  }

  // Asks for the first lines of a stream before the other one is left, so that it starts without a wait.
  void fetch_start(const View& x, int64_t j) {
    visit_runs(u_, x, j, j + 1, [&](const Run& run, int64_t) {
      for (int64_t at = 0; at < 4096; at += 64) __builtin_prefetch(run.row + at, 0, 2);
    });
  }

  void read_scales(const View& scales, int64_t j, int64_t keys, float* to) {
    visit_runs(u_, scales, j, j + keys, [&](const Run& run, int64_t n) {
      if (run.stride == sizeof(float)) {
        memcpy(to + n, run.row, static_cast<size_t>(run.count) * sizeof(float));
      } else {
        for (int64_t k = 0; k < run.count; ++k) memcpy(to + n + k, run.row + k * run.stride, sizeof(float));
      }
    });
    for (int64_t n = keys; n < round_up(keys, kLanes); ++n) to[n] = 0;
  }

  // Rows narrower than a unit, each in a unit of its own, filled with zeros.
  Run widened(const RowShape& shape, const Run& run) {
    if (!shape.narrow) return run;
    const int64_t bytes = shape.padded() * shape.element;
    memset(room_, 0, static_cast<size_t>(run.count * bytes));
    for (int64_t n = 0; n < run.count; ++n) {
      memcpy(room_ + n * bytes, run.row + n * run.stride, static_cast<size_t>(shape.bytes()));
    }
    return {room_, bytes, run.count};
  }

  // A score of -inf is a dropped pair, whether a mask, a bias or an infinite key made it.
  bool note_dropped(int64_t r, int64_t keys) {
    const float* s = s_ + r * kStrip;
    partial_[r] = any_none(s, keys);
    if (partial_[r]) {
      for (int64_t n = 0; n < keys; ++n) keep_[r * kDecodeBlock + n] = s[n] != kNone;
    }
    return partial_[r];
  }

  void weigh(int64_t r, int64_t keys) {
    float* p = s_ + r * kStrip;
    if (partial_[r]) {
      const uint8_t* keep = keep_ + r * kDecodeBlock;
      for (int64_t n = 0; n < keys; ++n) p[n] = keep[n] ? p[n] * value_scale_[n] : 0;
      return;
    }
    for (int64_t n = 0; n < keys; n += kLanes) {
      hn::Store(hn::Mul(hn::Load(f32, p + n), hn::Load(f32, value_scale_ + n)), f32, p + n);
    }
  }

  // What a row drops must not reach it through 0 · NaN, so a run with dropped pairs and values that are not finite goes
  // row by row over what is kept.
  void add(const Run& run, int64_t n, bool dropped) {
    if (!dropped || !plan_.finite || plan_.finite(plan_.v, run)) {
      plan_.add(plan_.v, run, s_ + n, u_.rows, sums_ ? reinterpret_cast<float*>(sums_) : o_);
      return;
    }
    for (int64_t r = 0; r < u_.rows; ++r) {
      const float* p = s_ + r * kStrip + n;
      const uint8_t* keep = keep_ + r * kDecodeBlock + n;
      for (int64_t k = 0; k < run.count;) {
        const int64_t from = k;
        while (k < run.count && (!partial_[r] || keep[k])) ++k;
        plan_.add(plan_.v, run.slice(from, k - from), p + from, 1, o_ + r * plan_.v.padded());
        while (k < run.count && partial_[r] && !keep[k]) ++k;
      }
    }
  }

  const DecodePlan& plan_;
  const DecodeUnit& u_;
  float* o_;
  float* q_;
  char* room_;
  int32_t* sums_ = nullptr;  // of a block, where plan.gather asks for them
  DecodeRow row_[kDecodeMostRows];
  bool whole_[kDecodeMostRows], partial_[kDecodeMostRows];
  uint8_t* keep_;  // (rows, kDecodeBlock)
  float* s_;       // (rows, kStrip): scores, then weights
  HWY_ALIGN float head_[kMostUnit];
  HWY_ALIGN float key_scale_[kDecodeBlock], value_scale_[kDecodeBlock];
};

}  // namespace decode
