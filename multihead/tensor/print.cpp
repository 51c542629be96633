// A tensor as text.
#include "multihead/tensor/tensor.h"

namespace mh {

namespace {

constexpr int64_t kEdge = 3;  // values shown at either end of a long axis
constexpr std::string_view kCut = "…";

std::string element(const Tensor& x) {
  if (x.dtype() == DType::boolean) return x.item({}) != 0 ? "true" : "false";
  if (x.dtype() == DType::i64) return fmt::format("{}", *x.data<int64_t>());
  return is_float(x.dtype()) ? fmt::format("{:.5g}", x.item({})) : fmt::format("{}", static_cast<int64_t>(x.item({})));
}

void print(const Tensor& x, int depth, std::string& out) {
  if (x.rank() == 0) {
    out += element(x);
    return;
  }
  const bool innermost = x.rank() == 1;
  const std::string between = innermost ? ", " : ",\n" + std::string(static_cast<size_t>(depth) + 1, ' ');
  const int64_t size = x.size(0);
  const bool cut = size > 2 * kEdge + 1;
  out += '[';
  for (int64_t i = 0; i < size; ++i) {
    if (i > 0) out += between;
    if (cut && i == kEdge) {
      out += kCut;
      i = size - kEdge - 1;
      continue;
    }
    print(x.select(0, i), depth + 1, out);
  }
  out += ']';
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor) return "empty tensor";
  if (!tensor.device().is_cpu()) return fmt::format("{} on {}", to_string(tensor.to(Device{})), name(tensor.device()));
  std::string out = fmt::format("{} {}\n", name(tensor.dtype()), to_string(tensor.shape()));
  print(tensor, 0, out);
  return out;
}

}  // namespace mh
