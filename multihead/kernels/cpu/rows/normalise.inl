// Layer norm and RMS norm: statistics of a row while it is in the first cache, then one pass over it.
#pragma once

#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Mean (0 for RMS) and 1 / standard deviation; squares are of differences from the mean, so that a large mean costs
// nothing.
template <class T>
HWY_INLINE void row_moments(const T* x, int64_t n, bool centred, float eps, float& mean, float& rstd) {
  const float each = 1.0f / static_cast<float>(n);
  mean = 0;
  if (centred) {
    Chains sums(0);
    for_chains(
        n, [&](int64_t at, auto extent, int chain) { sums.of[chain] = hn::Add(sums.of[chain], get(x + at, extent)); });
    mean = sums.sum() * each;
  }
  Chains squares(0);
  const V centre = hn::Set(f32, mean);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    const V d = keep(hn::Sub(get(x + at, extent), centre), hn::Zero(f32), extent);
    squares.of[chain] = hn::MulAdd(d, d, squares.of[chain]);
  });
  rstd = 1.0f / sqrtf(squares.sum() * each + eps);
}

template <class X, class Y>
HWY_INLINE void normalise_row(const NormaliseForwardArgs& args, int64_t row) {
  const X* x = row_of<X>(args.x, row);
  Y* y = row_of<Y>(args.y, row);
  const int64_t n = args.x.size[1];
  float mean, rstd;
  row_moments(x, n, args.mean != nullptr, args.eps, mean, rstd);
  const V centre = hn::Set(f32, mean), scale = hn::Set(f32, rstd), one = hn::Set(f32, 1.0f), zero = hn::Zero(f32);
  for_vectors(n, [&](int64_t at, auto extent) {
    const V xhat = hn::Mul(hn::Sub(get(x + at, extent), centre), scale);
    const V gamma = args.gamma ? get(args.gamma + at, extent) : one,
            beta = args.beta ? get(args.beta + at, extent) : zero;
    put(hn::MulAdd(xhat, gamma, beta), y + at, extent);
  });
  if (args.mean) args.mean[row] = mean;
  args.rstd[row] = rstd;
}

void normalise_forward(const NormaliseForwardArgs& args, Queue&) {
  with_floats(args.x.dtype, args.y.dtype, [&]<class X, class Y>(Of<X>, Of<Y>) {
    for_rows(args.x.size[0], args.x.size[1], [&](int64_t row) { normalise_row<X, Y>(args, row); });
  });
}

// dx of one row; adds the row's share to dgamma and dbeta (C each, or null).
template <class X, class Y>
HWY_INLINE void normalise_row_backward(const NormaliseBackwardArgs& args, int64_t row, float* dgamma, float* dbeta) {
  const X* x = row_of<X>(args.x, row);
  const Y* dy = row_of<Y>(args.dy, row);
  X* dx = row_of<X>(args.dx, row);
  const int64_t n = args.x.size[1];
  const V centre = hn::Set(f32, args.mean ? args.mean[row] : 0), scale = hn::Set(f32, args.rstd[row]);
  const V zero = hn::Zero(f32), one = hn::Set(f32, 1.0f);
  Chains plain(0), along(0);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    const V d = get(dy + at, extent), g = args.gamma ? hn::Mul(d, get(args.gamma + at, extent)) : d;
    const V xhat = keep(hn::Mul(hn::Sub(get(x + at, extent), centre), scale), zero, extent);
    plain.of[chain] = hn::Add(plain.of[chain], g);
    along.of[chain] = hn::MulAdd(g, xhat, along.of[chain]);
    if (dgamma) put(hn::MulAdd(d, xhat, get(dgamma + at, extent)), dgamma + at, extent);
    if (dbeta) put(hn::Add(d, get(dbeta + at, extent)), dbeta + at, extent);
  });
  const float share = 1.0f / static_cast<float>(n);
  const V mean_g = hn::Set(f32, args.mean ? plain.sum() * share : 0), mean_along = hn::Set(f32, along.sum() * share);
  for_vectors(n, [&](int64_t at, auto extent) {
    const V g = hn::Mul(get(dy + at, extent), args.gamma ? get(args.gamma + at, extent) : one);
    const V xhat = hn::Mul(hn::Sub(get(x + at, extent), centre), scale);
    const V each = hn::Mul(scale, hn::NegMulAdd(xhat, mean_along, hn::Sub(g, mean_g)));
    put(args.add ? hn::Add(get(dx + at, extent), each) : each, dx + at, extent);
  });
}

// Sums over rows are kept by blocks: at most 64, so that adding them up stays small, of 32 rows or more.
inline int64_t rows_per_block(int64_t rows) { return larger(32, blocks_of(rows, 64)); }

// to[c] = Σ of parts[block · width + c], in ascending order of blocks.
inline void add_blocks(const float* parts, int64_t blocks, int64_t width, float* to) {
  constexpr int64_t kColumns = 1024;
  parallel_for(blocks_of(width, kColumns), [&](int64_t task) {
    const int64_t first = task * kColumns, count = smaller(kColumns, width - first);
    for_vectors(count, [&](int64_t at, auto extent) {
      V sum = hn::Zero(f32);
      for (int64_t block = 0; block < blocks; ++block)
        sum = hn::Add(sum, get(parts + block * width + first + at, extent));
      put(sum, to + first + at, extent);
    });
  });
}

void normalise_backward(const NormaliseBackwardArgs& args, Queue&) {
  const int64_t rows = args.x.size[0], width = args.x.size[1], each = rows_per_block(rows),
                blocks = blocks_of(rows, each);
  Scratch scratch;
  float* dgammas = args.dgamma ? scratch.take<float>(blocks * width) : nullptr;
  float* dbetas = args.dbeta ? scratch.take<float>(blocks * width) : nullptr;
  with_floats(args.x.dtype, args.dy.dtype, [&]<class X, class Y>(Of<X>, Of<Y>) {
    parallel_near(blocks, [&](int64_t block) {
      float* dgamma = dgammas ? dgammas + block * width : nullptr;
      float* dbeta = dbetas ? dbetas + block * width : nullptr;
      if (dgamma) memset(dgamma, 0, static_cast<size_t>(width) * 4);
      if (dbeta) memset(dbeta, 0, static_cast<size_t>(width) * 4);
      for (int64_t row = block * each; row < smaller(rows, (block + 1) * each); ++row)
        normalise_row_backward<X, Y>(args, row, dgamma, dbeta);
    });
  });
  if (args.dgamma) add_blocks(dgammas, blocks, width, args.dgamma);
  if (args.dbeta) add_blocks(dbetas, blocks, width, args.dbeta);
}
