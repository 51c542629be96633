// Packed operands of the matrix product: panels of 32-bit words, step by step along k.
//
// A word is one f32, or two bf16 of consecutive k (the lower half is the earlier). The words of a panel of `width`
// lines lie as out[step · width + line]: a panel of w has up to kPanelWidth columns as lines, a group of rows of a its
// rows.
#pragma once

#include "multihead/kernels/cpu/gemm/microkernel.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/turn.inl"
#include "multihead/kernels/cpu/vector_math.inl"

constexpr int64_t kPanelWidth = kTileVectors * kLanes;
// Bytes of an operand that are packed at a time.
constexpr int64_t kPackBytes = 16 << 20;

// Steps that `depth` consecutive k take.
template <class T>
constexpr int64_t steps_of(int64_t depth) {
  return sizeof(T) == 4 ? depth : (depth + 1) / 2;
}

// Words as what they hold: f32, or pairs.
template <class T>
auto typed_words(const uint32_t* words) {
  if constexpr (sizeof(T) == 4) {
    return reinterpret_cast<const float*>(words);
  } else {
    return words;
  }
}

HWY_INLINE uint32_t word_of(const float* at, int64_t, bool) {
  uint32_t word;
  memcpy(&word, at, 4);
  return word;
}
HWY_INLINE uint32_t word_of(const bf16* at, int64_t along_k, bool whole) {
  return at->bits | (whole ? static_cast<uint32_t>(at[along_k].bits) << 16 : 0u);
}

// What lies where: element (k, line) of the operand is at[k · along_k + line · along_lines].
template <class T>
struct Lines {
  const T* at;
  int64_t along_k, along_lines;

  const T* operator()(int64_t k, int64_t line) const { return at + k * along_k + line * along_lines; }
};

template <class T>
void pack_one_by_one(const Lines<T>& in, int64_t depth, int64_t first_step, int64_t first, int64_t count, int64_t width,
                     uint32_t* out) {
  constexpr int64_t kStep = 4 / sizeof(T);
  for (int64_t s = first_step; s < steps_of<T>(depth); ++s)
    for (int64_t line = first; line < count; ++line)
      out[s * width + line] = word_of(in(s * kStep, line), in.along_k, s * kStep + kStep <= depth);
}

// Lines that are rows of memory.
template <class T>
void pack_rows(const Lines<T>& in, int64_t depth, int64_t count, int64_t width, uint32_t* out) {
  const int64_t steps = depth * static_cast<int64_t>(sizeof(T)) / 16 * 4;
  const int64_t apart = in.along_lines * static_cast<int64_t>(sizeof(T));
  int64_t line = 0;
  for (; line + kLanes <= count; line += kLanes) turn_rows(f32, in(0, line), apart, steps, width, out + line);
  if constexpr (kLanes == 16) {
    const hn::CappedTag<float, 8> eight;
    for (; line + 8 <= count; line += 8) turn_rows(eight, in(0, line), apart, steps, width, out + line);
  }
  const hn::CappedTag<float, 4> four;
  for (; line + 4 <= count; line += 4) turn_rows(four, in(0, line), apart, steps, width, out + line);
  pack_one_by_one(in, depth, steps, 0, line, width, out);
  pack_one_by_one(in, depth, 0, line, count, width, out);
}

// Steps of f32 that are asked for ahead where lines lie side by side: runs of two or three cache lines, a row of memory
// apart, which the core does not foresee (Zen 4: 3 % of dyᵀ · x; 8 to 32 steps the same).
constexpr int64_t kPackAhead = 16;
HWY_INLINE void ask_line_pieces(const float* at, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(reinterpret_cast<const char*>(at) + byte);
}

HWY_INLINE void pack_columns(const Lines<float>& in, int64_t depth, int64_t count, int64_t width, uint32_t* out) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t k = 0; k < depth; ++k) {
    const float* from = in(k, 0);
    ask_line_pieces(in(k + kPackAhead, 0), count * 4);
    float* to = reinterpret_cast<float*>(out + k * width);
    for (int64_t c = 0; c < whole; c += kLanes) hn::StoreU(hn::LoadU(f32, from + c), f32, to + c);
    for (int64_t c = whole; c < count; ++c) to[c] = from[c];
  }
}

// Lines [first, count) as far as they fill vectors of D; where they end.
template <class D>
HWY_INLINE int64_t pair_columns(D d, const uint16_t* early, const uint16_t* late, int64_t first, int64_t count,
                                uint32_t* to) {
  const hn::Rebind<uint16_t, D> half;
  constexpr int64_t kStep = hn::MaxLanes(d);
  int64_t c = first;
  for (; c + kStep <= count; c += kStep) {
    const auto low = hn::PromoteTo(d, hn::LoadU(half, early + c));
    const auto high = hn::PromoteTo(d, hn::LoadU(half, late + c));
    hn::StoreU(hn::Or(low, hn::ShiftLeft<16>(high)), d, to + c);
  }
  return c;
}

HWY_INLINE void pack_columns(const Lines<bf16>& in, int64_t depth, int64_t count, int64_t width, uint32_t* out) {
  int64_t whole = 0;
  for (int64_t s = 0; s < depth / 2; ++s) {
    const uint16_t* early = &in(2 * s, 0)->bits;
    const uint16_t* late = &in(2 * s + 1, 0)->bits;
    uint32_t* to = out + s * width;
    whole = pair_columns(hn::ScalableTag<uint32_t>(), early, late, 0, count, to);
    if constexpr (kLanes == 16) whole = pair_columns(hn::CappedTag<uint32_t, 8>(), early, late, whole, count, to);
    whole = pair_columns(hn::CappedTag<uint32_t, 4>(), early, late, whole, count, to);
  }
  pack_one_by_one(in, depth, depth / 2, 0, whole, width, out);
  pack_one_by_one(in, depth, 0, whole, count, width, out);
}

// Steps of kTileRows lines, lines side by side in memory.
HWY_INLINE void copy_step(const Lines<float>& in, int64_t step, uint32_t* out) {
  const hn::CappedTag<float, kTileRows> some;
  const float* from = in(step, 0);
  for (size_t c = 0; c < kTileRows; c += hn::MaxLanes(some))
    hn::StoreU(hn::LoadU(some, from + c), some, reinterpret_cast<float*>(out) + c);
}
HWY_INLINE void copy_step(const Lines<bf16>& in, int64_t step, uint32_t* out) {
  pair_columns(hn::CappedTag<uint32_t, kTileRows>(), &in(2 * step, 0)->bits, &in(2 * step + 1, 0)->bits, 0, kTileRows,
               out);
}

// Whole groups of kTileRows lines that lie side by side in memory, one group after the other in out: four groups, one
// or two cache lines, at a time. With eight the places they go to crowd one another out of the cache; fewer steps of a
// group at a time, or asking for lines ahead, gave nothing (Zen 4, pairs, K 1024: 186 GFLOP/s; eight 179, by steps 176,
// ahead 187).
template <class T>
void pack_column_groups(const Lines<T>& in, int64_t depth, int64_t groups, uint32_t* out) {
  const int64_t words = steps_of<T>(depth) * kTileRows, whole = depth * static_cast<int64_t>(sizeof(T)) / 4;
  for (int64_t first = 0; first < groups; first += 4) {
    const int64_t last = smaller(groups, first + 4);
    for (int64_t s = 0; s < whole; ++s) {
      if constexpr (sizeof(T) == 4)
        ask_line_pieces(in(s + kPackAhead, first * kTileRows), (last - first) * kTileRows * 4);
      for (int64_t g = first; g < last; ++g)
        copy_step({in(0, g * kTileRows), in.along_k, 1}, s, out + g * words + s * kTileRows);
    }
    for (int64_t g = first; g < last; ++g)
      pack_one_by_one(Lines<T>{in(0, g * kTileRows), in.along_k, 1}, depth, whole, 0, kTileRows, kTileRows,
                      out + g * words);
  }
}

// `depth` elements of `count` lines as words; lines from count to width are zeros.
template <class T>
void pack_words(const Lines<T>& in, int64_t depth, int64_t count, int64_t width, uint32_t* out) {
  if (in.along_lines == 1) {
    pack_columns(in, depth, count, width, out);
  } else if (in.along_k == 1) {
    pack_rows(in, depth, count, width, out);
  } else {
    pack_one_by_one(in, depth, 0, 0, count, width, out);
  }
  if (count == width) return;
  for (int64_t s = 0; s < steps_of<T>(depth); ++s)
    memset(out + s * width + count, 0, static_cast<size_t>(width - count) * 4);
}

// Pairs of bf16 become f32: out[k · width + line].
inline void widen_words(const uint32_t* words, int64_t depth, int64_t width, float* out) {
  const hn::ScalableTag<uint32_t> u32;
  const auto upper = hn::Set(u32, 0xffff0000u);
  for (int64_t s = 0; s < depth / 2; ++s) {
    const uint32_t* from = words + s * width;
    float* to = out + 2 * s * width;
    int64_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
      const auto pair = hn::LoadU(u32, from + c);
      hn::StoreU(hn::BitCast(f32, hn::ShiftLeft<16>(pair)), f32, to + c);
      hn::StoreU(hn::BitCast(f32, hn::And(pair, upper)), f32, to + width + c);
    }
    for (; c < width; ++c) {
      const uint32_t both[2] = {from[c] << 16, from[c] & 0xffff0000u};
      memcpy(to + c, &both[0], 4);
      memcpy(to + width + c, &both[1], 4);
    }
  }
  if (depth % 2 == 0) return;
  for (int64_t c = 0; c < width; ++c) {
    const uint32_t low = words[depth / 2 * width + c] << 16;
    memcpy(out + (depth - 1) * width + c, &low, 4);
  }
}
