// Masks that keep one run of keys per row: lengths, causal, window and prefix. Which tiles they cut, skip and keep
// whole.
#pragma once

#include "multihead/kernels/cuda/call.h"

namespace mh::kernels::cuda {

// Row i sits at position + i and keeps the keys [low(i), high(i)); both ends only grow with i.
struct Interval {
  int position = 0, k_len = 0;
  int behind = kFar, ahead = kFar;
  int prefix = kFar;  // kFar: no prefix mask; else j <= max(position, prefix - 1)

  MH_BOTH static int smaller(int a, int b) { return a < b ? a : b; }
  MH_BOTH static int larger(int a, int b) { return a > b ? a : b; }
  MH_BOTH static int bounded(int x) { return smaller(larger(x, -kFar), kFar); }

  MH_BOTH int low(int i) const { return behind >= kFar ? 0 : larger(0, bounded(position + i) - behind); }
  MH_BOTH int high(int i) const {
    const int at = bounded(position + i);
    int last = ahead >= kFar ? kFar : at + ahead;
    if (prefix < kFar) last = smaller(last, larger(at, prefix - 1));
    return smaller(k_len, last >= kFar ? kFar : last + 1);
  }
  MH_BOTH bool keeps(int i, int j) const { return j >= low(i) && j < high(i); }

  // Whether rows [i0, i1) keep every one of the keys [j0, j1).
  MH_BOTH bool whole(int i0, int i1, int j0, int j1) const { return low(i1 - 1) <= j0 && high(i0) >= j1; }

  // Of the rows [0, rows), those that may keep a key of [j0, j1): [first_row, end_row). Rows outside keep none of them.
  MH_BOTH int first_row(int j0) const {
    int first = 0;
    if (ahead < kFar) first = larger(first, j0 - ahead - position);
    if (prefix < kFar && j0 >= prefix) first = larger(first, j0 - position);
    return first;
  }
  MH_BOTH int end_row(int j1, int rows) const {
    return behind >= kFar ? rows : larger(0, smaller(rows, j1 + behind - position));
  }
};

MH_BOTH inline Interval interval_of(const Options& options, const Span& span) {
  Interval mask;
  mask.position = span.position;
  mask.k_len = span.k_len;
  mask.behind = options.behind;
  mask.ahead = options.ahead;
  mask.prefix = options.has_prefix ? span.prefix : kFar;
  return mask;
}

// The key blocks of rows [i0, i1), in blocks of `width` keys counted from key 0. Of [first, last) the blocks
// [whole_first, whole_last) need no mask. Never empty: rows that keep nothing get one block, wholly masked.
struct Blocks {
  int first = 0, last = 1, whole_first = 0, whole_last = 0;
};

MH_BOTH inline Blocks blocks_of(const Interval& mask, int i0, int i1, int width) {
  Blocks out;
  out.first = mask.low(i0) / width;
  out.last = (Interval::larger(mask.high(i1 - 1), 0) + width - 1) / width;
  if (out.last <= out.first) {
    out.last = Interval::larger(1, Interval::smaller(out.first + 1, (mask.k_len + width - 1) / width));
    out.first = out.last - 1;
  }
  out.whole_first = (mask.low(i1 - 1) + width - 1) / width;
  out.whole_last = Interval::larger(mask.high(i0), 0) / width;
  return out;
}

}  // namespace mh::kernels::cuda
