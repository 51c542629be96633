// Rows as integers of 16 bits: scales, and the layouts of both sides of their products.
#pragma once

#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

using I16 = hn::ScalableTag<int16_t>;
constexpr I16 i16;

// A row is scaled to this length, so that no sum of products of two rows reaches 2^31 (Cauchy and Schwarz; rounding
// adds half a root of K, at most 64); where that would take an element past 16 bits, to less.
constexpr float kLength = 46000;
constexpr float kLargest = 32767;

struct Rounded {
  float scale = 1;  // x = scale · integer, to within scale / 2
  float sum = 0;    // of |x|
  float length = 0;
};

inline Rounded measured(const float* x, int64_t n) {
  Chains squares(0), sums(0), most(0);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    const V each = hn::Abs(get(x + at, extent));
    squares.of[chain] = hn::MulAdd(each, each, squares.of[chain]);
    sums.of[chain] = hn::Add(sums.of[chain], each);
    most.of[chain] = hn::Max(most.of[chain], each);
  });
  Rounded r;
  r.sum = sums.sum();
  r.length = sqrtf(squares.sum());
  const float by_length = r.length / kLength, by_most = most.max() / kLargest;
  r.scale = by_length > by_most ? by_length : by_most;
  if (r.scale < 1e-30f) r.scale = 1e-30f;  // all but zero: rounds to zero
  return r;
}

// The integers of a row in pairs, `apart` words from one to the next; the one behind an odd last is 0.
inline void round_row(const float* x, int64_t n, float scale, int64_t apart, uint32_t* out) {
  const V factor = hn::Set(f32, 1 / scale), most = hn::Set(f32, kLargest);
  for_vectors(n, [&](int64_t at, auto extent) {
    const V y = hn::Max(hn::Min(hn::Mul(get(x + at, extent), factor), most), hn::Neg(most));
    HWY_ALIGN int32_t lanes[kLanes];
    hn::Store(hn::NearestInt(y), i32, lanes);
    for (int64_t d = 0; d < smaller(kLanes, n - at); d += 2)
      out[(at + d) / 2 * apart] = (static_cast<uint32_t>(lanes[d]) & 0xffffu) | static_cast<uint32_t>(lanes[d + 1])
                                                                                    << 16;
  });
}

// Columns of a panel: three vectors of sums.
constexpr int kTopVectors = 3;
constexpr int64_t kTopPanel = kTopVectors * kLanes;

// What pack writes: this, the scale of every column (0 past the last), and panel after panel the words of two
// successive k, kTopPanel columns side by side.
struct TopWeights {
  struct Facts {
    float most_sum, most_scale, most_length;  // over the columns
    float unused[13];
  };
  const Facts* facts;
  const float* scales;
  const uint32_t* words;
  int64_t n, steps;

  static int64_t panels_of(int64_t n) { return (n + kTopPanel - 1) / kTopPanel; }
  static int64_t steps_of(int64_t k) { return (k + 1) / 2; }
  static int64_t bytes(int64_t n, int64_t k) {
    return static_cast<int64_t>(sizeof(Facts)) + panels_of(n) * kTopPanel * 4 * (1 + steps_of(k));
  }
  static TopWeights at(const void* packed, int64_t n, int64_t k) {
    const Facts* facts = static_cast<const Facts*>(packed);
    const float* scales = reinterpret_cast<const float*>(facts + 1);
    return {facts, scales, reinterpret_cast<const uint32_t*>(scales + panels_of(n) * kTopPanel), n, steps_of(k)};
  }
  int64_t panels() const { return panels_of(n); }
  const uint32_t* panel(int64_t number) const { return words + number * kTopPanel * steps; }
};

void linear_top_k_pack(const LinearTopKPackArgs& args, Queue&) {
  const int64_t n = args.w.size[0], k = args.w.size[1];
  if (args.bytes) *args.bytes = TopWeights::bytes(n, k);
  if (!args.packed) return;
  memset(args.packed, 0, static_cast<size_t>(TopWeights::bytes(n, k)));
  const TopWeights to = TopWeights::at(args.packed, n, k);
  TopWeights::Facts facts{};
  for (int64_t c = 0; c < n; ++c) {
    const float* row = row_of<float>(args.w, c);
    const Rounded r = measured(row, k);
    const_cast<float*>(to.scales)[c] = r.scale;
    facts.most_sum = r.sum > facts.most_sum ? r.sum : facts.most_sum;
    facts.most_scale = r.scale > facts.most_scale ? r.scale : facts.most_scale;
    facts.most_length = r.length > facts.most_length ? r.length : facts.most_length;
    round_row(row, k, r.scale, kTopPanel, const_cast<uint32_t*>(to.panel(c / kTopPanel)) + c % kTopPanel);
  }
  memcpy(args.packed, &facts, sizeof facts);
}
