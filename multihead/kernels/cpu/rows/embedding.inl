// Rows taken from a table, and gradients given back to it.
#pragma once

#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

template <class T, class Y>
HWY_INLINE void embed_row(const EmbeddingForwardArgs& args, int64_t n) {
  const T* row = row_of<T>(args.table, args.ids[n]);
  const float* position = args.positions ? row_of<float>(args.positions, args.position_ids[n]) : nullptr;
  Y* y = row_of<Y>(args.y, n);
  const V scale = hn::Set(f32, args.scale);
  for_vectors(args.table.size[1], [&](int64_t at, auto extent) {
    V x = hn::Mul(get(row + at, extent), scale);
    if (position) x = hn::Add(x, get(position + at, extent));
    put(x, y + at, extent);
  });
}

void embedding_forward(const EmbeddingForwardArgs& args, Queue&) {
  with_floats(args.table.dtype, args.y.dtype, [&]<class T, class Y>(Of<T>, Of<Y>) {
    for_rows(args.y.size[0], args.y.size[1], [&](int64_t n) { embed_row<T, Y>(args, n); });
  });
}

// A task owns some columns of every row, so the order of each sum is that of the tokens.
template <class D>
inline void scatter_columns(const EmbeddingBackwardArgs& args, int64_t first, int64_t count) {
  const V scale = hn::Set(f32, args.scale);
  for (int64_t n = 0; n < args.dy.size[0]; ++n) {
    const D* dy = row_of<D>(args.dy, n) + first;
    float* to = row_of<float>(args.dtable, args.ids[n]) + first;
    for_vectors(count, [&](int64_t at, auto extent) {
      put(hn::MulAdd(get(dy + at, extent), scale, get(to + at, extent)), to + at, extent);
    });
  }
}

void embedding_backward(const EmbeddingBackwardArgs& args, Queue&) {
  constexpr int64_t kColumns = 64;
  const int64_t width = args.dtable.size[1];
  float* all = static_cast<float*>(args.dtable.data);
  if (!args.add)
    for_pieces(args.dtable.size[0] * width,
               [&](int64_t begin, int64_t count) { memset(all + begin, 0, static_cast<size_t>(count) * 4); });
  with_float(args.dy.dtype, [&]<class D>(Of<D>) {
    parallel_for(blocks_of(width, kColumns), [&](int64_t task) {
      scatter_columns<D>(args, task * kColumns, smaller(kColumns, width - task * kColumns));
    });
  });
}
