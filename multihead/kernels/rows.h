// The contract of what losses over chosen rows need: sums in f64, and rows taken and put back by number.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// *y = factor · Σ x in f64, in ascending order, then rounded.
struct TotalArgs {
  const float* x = nullptr;
  int64_t count = 0;
  double factor = 1;
  float* y = nullptr;
};

// take_rows: y[n] = x[rows[n]];  put_rows: y[rows[n]] = x[n].  x and y (…, C) of one type, unit last stride.
struct RowCopyArgs {
  View x{}, y{};
  const int64_t* rows = nullptr;  // count of them, each within its tensor; of put_rows none twice
  int64_t count = 0;
};

}  // namespace mh::kernels
