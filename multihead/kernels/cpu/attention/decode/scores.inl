// Between the two passes of decode, along the keys of one row: limits and masks, scale, cap, bias, the running softmax.
#pragma once

#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/vector_math.inl"

namespace decode {

struct KeyRange {
  int64_t begin = 0, end = 0;
};

// One row of a key head: which query of which head, and the keys that lengths, causal, window and prefix leave to it.
struct DecodeQuery {
  int64_t head = 0, query = 0, position = 0;
  KeyRange keys;
};

// One sequence and one key head.
struct DecodeUnit {
  const AttentionForwardArgs* args = nullptr;
  const Sequence* sequence = nullptr;
  int64_t b = 0, key_head = 0;
  int64_t rows = 0;
  DecodeQuery row[kDecodeMostRows];
};

inline KeyRange keys_in_reach(const Scores& s, const Sequence& sequence, int64_t position) {
  const int64_t last = sequence.k_len - 1;
  KeyRange range;
  range.begin = s.behind >= position ? 0 : position - s.behind;
  range.end = 1 + (s.ahead >= last - position ? last : position + s.ahead);
  if (s.has_prefix) range.end = smaller(range.end, 1 + larger(position, sequence.prefix - 1));
  range.end = larger(range.end, range.begin);
  return range;
}

inline DecodeUnit decode_unit(const AttentionForwardArgs& a, int64_t b, int64_t key_head) {
  DecodeUnit u;
  u.args = &a;
  u.sequence = a.sequences.data + b;
  u.b = b;
  u.key_head = key_head;
  const int64_t group = a.q.size[1] / a.kv.k.size[1];
  for (int64_t g = 0; g < group; ++g) {
    for (int64_t i = 0; i < u.sequence->q_len; ++i) {
      const int64_t position = u.sequence->position + i;
      u.row[u.rows++] = {key_head * group + g, i, position, keys_in_reach(a.scores, *u.sequence, position)};
    }
  }
  return u;
}

inline int64_t offset_of(const View& x, int64_t b, int64_t h, int64_t i, int64_t j) {
  return b * x.stride[0] + h * x.stride[1] + i * x.stride[2] + j * x.stride[3];
}

// keep[n] = 1 where row r sees key j + n; how many it sees of `keys`.
inline int64_t mark_kept(const DecodeUnit& u, int64_t r, int64_t j, int64_t keys, uint8_t* keep) {
  const Scores& s = u.args->scores;
  const KeyRange reach = u.row[r].keys;
  for (int64_t n = 0; n < keys; ++n) keep[n] = j + n >= reach.begin && j + n < reach.end;
  if (s.q_documents) {
    const View& mine_of = s.q_documents;
    const int32_t mine =
        static_cast<const int32_t*>(mine_of.data)[u.b * mine_of.stride[0] + u.row[r].query * mine_of.stride[1]];
    const int64_t step = s.k_documents.stride[1];
    const int32_t* theirs = static_cast<const int32_t*>(s.k_documents.data) + u.b * s.k_documents.stride[0] + j * step;
    for (int64_t n = 0; n < keys; ++n) keep[n] &= theirs[n * step] == mine;
  }
  for (int m = 0; m < s.dense_count; ++m) {
    const View& x = s.dense[m].where;
    const uint8_t* where = static_cast<const uint8_t*>(x.data) + offset_of(x, u.b, u.row[r].head, u.row[r].query, j);
    const int64_t step = x.stride[3];
    const uint8_t wanted = s.dense[m].keep;
    for (int64_t n = 0; n < keys; ++n) keep[n] &= (where[n * step] != 0) == wanted;
  }
  int64_t kept = 0;
  for (int64_t n = 0; n < keys; ++n) kept += keep[n];
  return kept;
}

// A bias of -inf drops the pair whatever its score is.
HWY_INLINE V biased(V s, V bias) {
  const V none = hn::Set(f32, kNone);
  return hn::IfThenElse(hn::Eq(bias, none), none, hn::Add(s, bias));
}
inline float biased(float s, float bias) { return bias == kNone ? kNone : s + bias; }

template <class T>
void add_bias_of(const T* bias, int64_t step, int64_t keys, float* s) {
  if (step == 1) {
    int64_t n = 0;
    for (; n + kLanes <= keys; n += kLanes) {
      hn::Store(biased(hn::Load(f32, s + n), load_widened(bias + n)), f32, s + n);
    }
    for (; n < keys; ++n) s[n] = biased(s[n], widen(bias[n]));
    return;
  }
  for (int64_t n = 0; n < keys; ++n) s[n] = biased(s[n], widen(bias[n * step]));
}

inline void add_bias(const DecodeUnit& u, int64_t r, int64_t j, int64_t keys, float* s) {
  const View& x = u.args->scores.bias;
  const int64_t at = offset_of(x, u.b, u.row[r].head, u.row[r].query, j);
  if (x.dtype == DType::f32) add_bias_of(static_cast<const float*>(x.data) + at, x.stride[3], keys, s);
  if (x.dtype == DType::bf16) add_bias_of(static_cast<const bf16*>(x.data) + at, x.stride[3], keys, s);
  if (x.dtype == DType::f16) add_bias_of(static_cast<const f16*>(x.data) + at, x.stride[3], keys, s);
}

// ALiBi: -slope · |distance|, in f32 where that is exact, as an array of it would hold.
inline void add_slope(const DecodeUnit& u, int64_t r, int64_t j, int64_t keys, float* s) {
  constexpr int64_t kExact = int64_t{1} << 24;
  const float slope = *u.args->scores.slopes.at<float>(u.row[r].head);
  const int64_t first = u.row[r].position - j;
  if (first > kExact || first - keys < -kExact) {
    for (int64_t n = 0; n < keys; ++n) {
      const int64_t distance = first > n ? first - n : n - first;
      s[n] = biased(s[n], static_cast<float>(-static_cast<double>(slope) * static_cast<double>(distance)));
    }
    return;
  }
  const V down = hn::Set(f32, -slope);
  for (int64_t n = 0; n < keys; n += kLanes) {
    const auto distance = hn::Sub(hn::Set(i32, static_cast<int32_t>(first - n)), hn::Iota(i32, 0));
    const V bias = hn::Mul(down, hn::Abs(hn::ConvertTo(f32, distance)));
    hn::Store(biased(hn::Load(f32, s + n), bias), f32, s + n);
  }
}

// The array of biases is contiguous in the distance, so it is read backwards; past its ends, the entry there holds.
inline void add_relative(const DecodeUnit& u, int64_t r, int64_t j, int64_t keys, float* s) {
  const Scores& sc = u.args->scores;
  const float* bias = sc.relative + u.row[r].head * sc.relative_count;
  const int64_t last = sc.relative_count - 1, first = u.row[r].position - j - sc.relative_min;
  const auto add_end = [&](int64_t from, int64_t to, float end) HWY_ATTR {
    int64_t n = from;
    for (; n < to && n % kLanes != 0; ++n) s[n] = biased(s[n], end);
    for (; n + kLanes <= to; n += kLanes) hn::Store(biased(hn::Load(f32, s + n), hn::Set(f32, end)), f32, s + n);
    for (; n < to; ++n) s[n] = biased(s[n], end);
  };
  const int64_t inside = smaller(larger(first - last, 0), keys), past = smaller(larger(first + 1, inside), keys);
  add_end(0, inside, bias[last]);
  int64_t n = inside;
  for (; n + kLanes <= past; n += kLanes) {
    const V x = hn::Reverse(f32, hn::LoadU(f32, bias + first - n - (kLanes - 1)));
    hn::StoreU(biased(hn::LoadU(f32, s + n), x), f32, s + n);
  }
  for (; n < past; ++n) s[n] = biased(s[n], bias[first - n]);
  add_end(past, keys, bias[0]);
}

// s[n] from q · k to the finished score of key j + n, -inf where `keep` (null: all) is 0 and past `keys`.
// key_scale: of an i8 cache, else null.
inline void finish_scores(const DecodeUnit& u, int64_t r, int64_t j, int64_t keys, const float* key_scale,
                          const uint8_t* keep, float* s) {
  const Scores& sc = u.args->scores;
  const V scale = hn::Set(f32, sc.scale[u.row[r].head]);
  const V cap = hn::Set(f32, sc.cap);
  for (int64_t n = 0; n < keys; n += kLanes) {
    V x = hn::Mul(hn::Load(f32, s + n), scale);
    if (key_scale) x = hn::Mul(x, hn::Load(f32, key_scale + n));
    if (sc.cap > 0) x = hn::Mul(cap, tanh(hn::Div(x, cap)));
    hn::Store(x, f32, s + n);
  }
  if (sc.slopes)
    add_slope(u, r, j, keys, s);
  else if (sc.relative)
    add_relative(u, r, j, keys, s);
  if (sc.bias) add_bias(u, r, j, keys, s);
  if (keep) {
    for (int64_t n = 0; n < keys; ++n) s[n] = keep[n] ? s[n] : kNone;
  }
  for (int64_t n = keys; n < round_up(keys, kLanes); ++n) s[n] = kNone;
}

inline bool any_none(const float* s, int64_t keys) {
  const V none = hn::Set(f32, kNone);
  int64_t n = 0;
  for (; n + kLanes <= keys; n += kLanes) {
    if (!hn::AllFalse(f32, hn::Eq(hn::Load(f32, s + n), none))) return true;
  }
  for (; n < keys; ++n) {
    if (s[n] == kNone) return true;
  }
  return false;
}

// The softmax of one row so far: the largest score, and the sum of exp(score - max).
struct DecodeRow {
  float max = kNone, sum = 0;

  // Turns the scores of a block into exp(score - max) and takes them in; what was gathered before shrinks by the
  // factor returned. A NaN among the scores reaches the sum.
  float take(float* s, int64_t keys) {
    V top = hn::Load(f32, s);
    for (int64_t n = kLanes; n < keys; n += kLanes) top = hn::Max(top, hn::Load(f32, s + n));
    const float highest = hn::GetLane(hn::MaxOfLanes(f32, top));
    const float raised = highest > max ? highest : max;
    if (raised == kNone) return take_nothing(s, keys);
    const V base = hn::Set(f32, raised), log2e = hn::Set(f32, kLog2E);
    V total = hn::Zero(f32);
    for (int64_t n = 0; n < keys; n += kLanes) {
      const V p = exp2(hn::Mul(hn::Sub(hn::Load(f32, s + n), base), log2e));
      hn::Store(p, f32, s + n);
      total = hn::Add(total, p);
    }
    const float shrink = raised == max ? 1 : expf(max - raised);
    max = raised;
    sum = sum * shrink + hn::GetLane(hn::SumOfLanes(f32, total));
    return shrink;
  }

 private:
  // No score above -inf: all dropped, or NaN, which the comparisons of x86 pass over.
  float take_nothing(float* s, int64_t keys) {
    for (int64_t n = 0; n < keys; ++n) {
      if (s[n] != kNone) {
        max = 0;
        sum = __builtin_nanf("");
      }
      s[n] = 0;
    }
    return 1;
  }
};

}  // namespace decode
