// The largest elements of rows.
#pragma once

#include "multihead/kernels/cpu/rows/top_list.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"

void top_k(const TopKArgs& args, Queue&) {
  const int64_t n = args.x.size[1];
  with_float(args.x.dtype, [&]<class T>(Of<T>) {
    for_rows(args.x.size[0], n, [&](int64_t row) { top_of_row(row_of<T>(args.x, row), n, args, row); });
  });
}
