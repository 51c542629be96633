// Attention of few queries over a long cache: chunks of keys in parallel, then their partial results in ascending order.

#include "multihead/kernels/cpu/attention_decode_rows.inl"
#include "multihead/kernels/cpu/attention_decode_scores.inl"

namespace decode {

using DotBlock = decltype(&dot_block<float>);
using AddBlock = decltype(&add_block<float>);
using RowsFinite = decltype(&rows_finite<float>);

inline DotBlock dot_block_of(DType t) {
  switch (t) {
    case DType::bf16: return dot_block<bf16>;
    case DType::f16: return dot_block<f16>;
    case DType::i8: return dot_block<int8_t>;
    default: return dot_block<float>;
  }
}

inline AddBlock add_block_of(DType t) {
  switch (t) {
    case DType::bf16: return add_block<bf16>;
    case DType::f16: return add_block<f16>;
    case DType::i8: return add_block<int8_t>;
    default: return add_block<float>;
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

// What all tasks of a call share. A partial is o (rows, padded width), then each row's max and sum.
struct DecodePlan {
  RowShape k, v;
  DotBlock dot = nullptr;
  AddBlock add = nullptr;
  RowsFinite finite = nullptr;  // null: an i8 cache holds nothing else
  bool marks = false;           // masks beyond the reach of a row
  int64_t partial = 0;          // floats
};

// Addresses of up to kDecodeBlock rows of the cache, padded to a multiple of four.
struct BlockRows {
  const char* row[kDecodeBlock + 16];
  int64_t count = 0;

  void locate(const DecodeUnit& u, const View& x, int64_t from, int64_t to) {
    const int64_t element = size_of(x.dtype);
    const View& pages = u.args->kv.pages;
    const char* base = static_cast<const char*>(x.data) + u.key_head * x.stride[1] * element;
    count = to - from;
    if (!pages) {
      base += (u.sequence->batch * x.stride[0] + (u.sequence->k_begin + from) * x.stride[2]) * element;
      for (int64_t n = 0; n < count; ++n) row[n] = base + n * x.stride[2] * element;
    } else {
      const int32_t* table = static_cast<const int32_t*>(pages.data) + u.b * pages.stride[0];
      int64_t block = from / x.size[2], within = from % x.size[2];
      for (int64_t n = 0; n < count; ++n) {
        row[n] = base + (table[block * pages.stride[1]] * x.stride[0] + within * x.stride[2]) * element;
        if (++within == x.size[2]) ++block, within = 0;
      }
    }
    for (int64_t n = count; n % 4 != 0 || n < count + 16; ++n) row[n] = row[count - 1];
  }

  // The scales of an i8 cache, located as rows of one element; zeros fill the last vector.
  void read_scales(float* to) const {
    for (int64_t n = 0; n < count; ++n) memcpy(to + n, row[n], sizeof(float));
    for (int64_t n = count; n < kDecodeBlock; ++n) to[n] = 0;
  }

  void widen_narrow(const RowShape& shape, char* room) {
    const int64_t bytes = shape.padded() * shape.element;
    memset(room, 0, static_cast<size_t>(count * bytes));
    for (int64_t n = 0; n < count; ++n) {
      memcpy(room + n * bytes, row[n], static_cast<size_t>(shape.bytes()));
      row[n] = room + n * bytes;
    }
    for (int64_t n = count; n % 4 != 0 || n < count + 16; ++n) row[n] = row[count - 1];
  }
};

template <class T>
void read_query(const T* q, const RowShape& shape, float* to) {
  for (int64_t d = 0; d < shape.width; ++d) to[place_of(shape, d)] = widen(q[d]);
}

// One task: the rows of a unit against the keys of one chunk.
class DecodeChunk {
 public:
  DecodeChunk(const DecodePlan& plan, const DecodeUnit& unit, Scratch& scratch, float* partial)
      : plan_(plan), u_(unit), o_(partial) {
    const int64_t width = plan.k.padded();
    q_ = scratch.take<float>(u_.rows * width);
    stage_ = scratch.take<float>(larger(4 * width, staged_keys(plan.v) * plan.v.padded()));
    room_ = scratch.take<char>(2 * kDecodeBlock * 2 * kLanes * 4);
    memset(q_, 0, static_cast<size_t>(u_.rows * width) * sizeof(float));
    for (int64_t r = 0; r < u_.rows; ++r) read_row(r, q_ + r * width);
    memset(o_, 0, static_cast<size_t>(u_.rows * plan.v.padded()) * sizeof(float));
    mark_new_lanes(plan.k, key_head_);
    mark_new_lanes(plan.v, value_head_);
  }

  void run(KeyRange chunk) {
    KeyRange reach = {chunk.end, chunk.begin};
    for (int64_t r = 0; r < u_.rows; ++r) {
      reach.begin = smaller(reach.begin, larger(chunk.begin, u_.row[r].keys.begin));
      reach.end = larger(reach.end, smaller(chunk.end, u_.row[r].keys.end));
    }
    for (int64_t j = reach.begin; j < reach.end;) {
      const int64_t end = block_end(j, reach.end);
      keys_.locate(u_, u_.args->kv.k, j, end);
      values_.locate(u_, u_.args->kv.v, j, end);
      block(j, end - j);
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
    memset(lanes, 0, 2 * kLanes * sizeof(float));
    for (int64_t d = shape.full * shape.unit; d < shape.width; ++d) {
      memcpy(lanes + place_of(shape, d) % shape.unit, &all, sizeof all);
    }
  }

  static int64_t block_end(int64_t j, int64_t end) { return smaller(end, (j / kDecodeBlock + 1) * kDecodeBlock); }

  void read_row(int64_t r, float* to) {
    const View& q = u_.args->q;
    const int64_t at = offset_of(q, u_.sequence->batch, u_.row[r].head, u_.sequence->q_begin + u_.row[r].query, 0);
    if (q.dtype == DType::f32) read_query(static_cast<const float*>(q.data) + at, plan_.k, to);
    if (q.dtype == DType::bf16) read_query(static_cast<const bf16*>(q.data) + at, plan_.k, to);
    if (q.dtype == DType::f16) read_query(static_cast<const f16*>(q.data) + at, plan_.k, to);
  }

  void block(int64_t j, int64_t keys) {
    int64_t kept = 0;
    for (int64_t r = 0; r < u_.rows; ++r) {
      const KeyRange reach = u_.row[r].keys;
      whole_[r] = !plan_.marks && reach.begin <= j && j + keys <= reach.end;
      kept += whole_[r] ? keys : mark_kept(u_, r, j, keys, keep_[r]);
    }
    if (kept == 0) return;

    const KeyValues& kv = u_.args->kv;
    const bool quantised = static_cast<bool>(kv.k_scale);
    if (quantised) {
      BlockRows scales;
      scales.locate(u_, kv.k_scale, j, j + keys);
      scales.read_scales(key_scale_);
      scales.locate(u_, kv.v_scale, j, j + keys);
      scales.read_scales(value_scale_);
    }
    if (plan_.k.narrow) keys_.widen_narrow(plan_.k, room_);
    plan_.dot(plan_.k, keys_.row, keys, q_, u_.rows, key_head_, s_[0], stage_);

    bool dropped = false;
    for (int64_t r = 0; r < u_.rows; ++r) {
      finish_scores(u_, r, j, keys, quantised ? key_scale_ : nullptr, whole_[r] ? nullptr : keep_[r], s_[r]);
      dropped |= note_dropped(r, keys);
      shrink_[r] = row_[r].take(s_[r], keys);
      if (quantised) weigh(r, keys);
    }
    if (plan_.v.narrow) values_.widen_narrow(plan_.v, room_ + kDecodeBlock * 2 * kLanes * 4);
    add(keys, dropped);
  }

  // A score of -inf is a dropped pair, whether a mask, a bias or an infinite key made it.
  bool note_dropped(int64_t r, int64_t keys) {
    partial_[r] = any_none(s_[r], keys);
    if (partial_[r]) {
      for (int64_t n = 0; n < keys; ++n) keep_[r][n] = s_[r][n] != kNone;
    }
    return partial_[r];
  }

  void weigh(int64_t r, int64_t keys) {
    float* p = s_[r];
    if (partial_[r]) {
      for (int64_t n = 0; n < keys; ++n) p[n] = keep_[r][n] ? p[n] * value_scale_[n] : 0;
      return;
    }
    for (int64_t n = 0; n < keys; n += kLanes) {
      hn::Store(hn::Mul(hn::Load(f32, p + n), hn::Load(f32, value_scale_ + n)), f32, p + n);
    }
  }

  // What a row drops must not reach it through 0 · NaN, so a block with dropped pairs and values that are not finite
  // goes row by row over what is kept.
  void add(int64_t keys, bool dropped) {
    if (!dropped || !plan_.finite || plan_.finite(plan_.v, values_.row, keys)) {
      plan_.add(plan_.v, values_.row, keys, s_[0], shrink_, u_.rows, value_head_, o_, stage_);
      return;
    }
    for (int64_t r = 0; r < u_.rows; ++r) {
      BlockRows kept;
      HWY_ALIGN float p[kDecodeBlock];
      for (int64_t n = 0; n < keys; ++n) {
        if (partial_[r] && !keep_[r][n]) continue;
        kept.row[kept.count] = values_.row[n];
        p[kept.count++] = s_[r][n];
      }
      plan_.add(plan_.v, kept.row, kept.count, p, shrink_ + r, 1, value_head_, o_ + r * plan_.v.padded(), stage_);
    }
  }

  const DecodePlan& plan_;
  const DecodeUnit& u_;
  float* o_;
  float* q_;
  float* stage_;
  char* room_;
  DecodeRow row_[kDecodeMostRows];
  BlockRows keys_, values_;
  bool whole_[kDecodeMostRows], partial_[kDecodeMostRows];
  uint8_t keep_[kDecodeMostRows][kDecodeBlock];
  float shrink_[kDecodeMostRows];
  HWY_ALIGN float s_[kDecodeMostRows][kDecodeBlock];
  HWY_ALIGN float key_head_[2 * kLanes], value_head_[2 * kLanes];
  HWY_ALIGN float key_scale_[kDecodeBlock], value_scale_[kDecodeBlock];
};

template <class T>
void write_row(const float* o, const RowShape& shape, T* to) {
  for (int64_t d = 0; d < shape.width; ++d) narrow(o[place_of(shape, d)], to + d);
}

// One row of o and lse from its partials, in ascending order of their keys; the sink joins last.
inline void join_partials(const DecodePlan& plan, const DecodeUnit& u, const float* partials, int64_t count, int64_t r) {
  const int64_t width = plan.v.padded();
  const float* maxima = partials + u.rows * width + r;
  const float* sums = maxima + u.rows;
  const float sink = u.args->scores.sink ? u.args->scores.sink[u.row[r].head] : kNone;
  float top = sink;
  for (int64_t c = 0; c < count; ++c) {
    const float x = maxima[c * plan.partial];
    if (!(x <= top)) top = x;
  }
  HWY_ALIGN float o[kDecodeMostWidth + 2 * kLanes] = {};
  float sum = 0;
  for (int64_t c = 0; c < count && top != kNone; ++c) {
    if (maxima[c * plan.partial] == kNone) continue;
    const float weight = expf(maxima[c * plan.partial] - top);
    const float* part = partials + c * plan.partial + r * width;
    sum += weight * sums[c * plan.partial];
    for (int64_t d = 0; d < width; d += kLanes) {
      const V x = hn::MulAdd(hn::Load(f32, part + d), hn::Set(f32, weight), hn::Load(f32, o + d));
      hn::Store(x, f32, o + d);
    }
  }
  if (sink != kNone) sum += expf(sink - top);
  if (top != kNone) {
    for (int64_t d = 0; d < width; d += kLanes) {
      hn::Store(hn::Div(hn::Load(f32, o + d), hn::Set(f32, sum)), f32, o + d);
    }
  }

  const View& y = u.args->o;
  const View& lse = u.args->lse;
  const int64_t batch = u.sequence->batch, i = u.sequence->q_begin + u.row[r].query, h = u.row[r].head;
  const int64_t at = offset_of(y, batch, h, i, 0);
  if (y.dtype == DType::f32) write_row(o, plan.v, static_cast<float*>(y.data) + at);
  if (y.dtype == DType::bf16) write_row(o, plan.v, static_cast<bf16*>(y.data) + at);
  if (y.dtype == DType::f16) write_row(o, plan.v, static_cast<f16*>(y.data) + at);
  if (lse) static_cast<float*>(lse.data)[offset_of(lse, batch, h, i, 0)] = top == kNone ? kNone : top + logf(sum);
}

inline DecodePlan decode_plan(const AttentionForwardArgs& a) {
  DecodePlan plan;
  plan.k = row_shape(a.q.size[3], a.kv.k.dtype);
  plan.v = row_shape(a.o.size[3], a.kv.v.dtype);
  plan.dot = dot_block_of(a.kv.k.dtype);
  plan.add = add_block_of(a.kv.v.dtype);
  plan.finite = rows_finite_of(a.kv.v.dtype);
  plan.marks = a.scores.q_documents || a.scores.dense_count > 0;
  const int64_t group = a.q.size[1] / a.kv.k.size[1];
  int64_t rows = 0;
  for (int64_t b = 0; b < a.sequences.count; ++b) rows = larger(rows, group * a.sequences.data[b].q_len);
  plan.partial = round_up(rows * (plan.v.padded() + 2), 16);
  return plan;
}

inline void attention_decode(const AttentionForwardArgs& a) {
  const DecodePlan plan = decode_plan(a);
  const int64_t heads = a.kv.k.size[1], count = a.sequences.count;
  Scratch scratch;
  // Task n of sequence b: chunk n % chunks of key head n / chunks. An empty sequence has one chunk, without keys.
  int64_t* first = scratch.take<int64_t>(count + 1);
  const auto chunks_of = [&](int64_t b) { return larger(1, decode_chunks(a.sequences.data[b].k_len)); };
  bool split = false;
  first[0] = 0;
  for (int64_t b = 0; b < count; ++b) {
    const int64_t tasks = a.sequences.data[b].q_len == 0 ? 0 : heads * chunks_of(b);
    first[b + 1] = first[b] + tasks;
    split |= chunks_of(b) > 1;
  }
  float* partials = split ? scratch.take<float>(first[count] * plan.partial) : nullptr;

  parallel_for(first[count], [&](int64_t task) {
    int64_t b = 0;
    for (int64_t step = count; step > 0; step = step / 2) {
      while (b + step < count && first[b + step] <= task) b += step;
    }
    const int64_t chunks = chunks_of(b), n = task - first[b];
    const int64_t k_len = a.sequences.data[b].k_len, keys = decode_chunk_keys(k_len), from = n % chunks * keys;
    const DecodeUnit u = decode_unit(a, b, n / chunks);
    Scratch own;
    float* partial = chunks == 1 ? own.take<float>(plan.partial) : partials + task * plan.partial;
    DecodeChunk(plan, u, own, partial).run({from, smaller(from + keys, k_len)});
    for (int64_t r = 0; chunks == 1 && r < u.rows; ++r) join_partials(plan, u, partial, 1, r);
  });
  if (!split) return;
  parallel_for(count * heads, [&](int64_t n) {
    const int64_t b = n / heads, chunks = chunks_of(b);
    if (chunks == 1 || a.sequences.data[b].q_len == 0) return;
    const DecodeUnit u = decode_unit(a, b, n % heads);
    const float* from = partials + (first[b] + n % heads * chunks) * plan.partial;
    for (int64_t r = 0; r < u.rows; ++r) join_partials(plan, u, from, chunks, r);
  });
}

}  // namespace decode

using decode::attention_decode;
