// Sums of rows in f64, and rows copied by number.
#include "multihead/kernels/rows.h"

#include <cstring>

#include "multihead/kernels/cpu/plain/plain.h"

namespace mh::kernels::plain {

namespace {

char* row_of(const View& view, int64_t row) {
  return static_cast<char*>(view.data) + row * view.stride[0] * size_of(view.dtype);
}

size_t row_bytes(const View& view) { return static_cast<size_t>(view.size[1] * size_of(view.dtype)); }

}  // namespace

void total(const TotalArgs& args, Queue&) {
  double sum = 0;
  for (int64_t n = 0; n < args.count; ++n) sum += static_cast<double>(args.x[n]);
  *args.y = static_cast<float>(sum * args.factor);
}

void take_rows(const RowCopyArgs& args, Queue&) {
  const size_t bytes = row_bytes(args.x);
  for (int64_t n = 0; n < args.count; ++n) std::memcpy(row_of(args.y, n), row_of(args.x, args.rows[n]), bytes);
}

void put_rows(const RowCopyArgs& args, Queue&) {
  const size_t bytes = row_bytes(args.x);
  for (int64_t n = 0; n < args.count; ++n) std::memcpy(row_of(args.y, args.rows[n]), row_of(args.x, n), bytes);
}

}  // namespace mh::kernels::plain
