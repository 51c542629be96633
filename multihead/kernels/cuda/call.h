// One call of attention as the GPU's kernels see it: plain data, no header of the host's libraries, so that nvcc reads
// it. The formulas are those of kernels/attention.h; pack.h makes a Call of its argument structs.
#pragma once

#include <climits>
#include <cstdint>

#ifdef __CUDACC__
#define MH_BOTH __host__ __device__
#else
#define MH_BOTH
#endif

namespace mh::kernels::cuda {

enum class Element : uint8_t { f32, bf16, f16, i8, u8, i32 };

// Memory of the device; strides count elements, 0 repeats one. Axes: batch, head, row, column.
struct Array {
  void* data = nullptr;
  Element type = Element::f32;
  int64_t stride[4] = {};
  MH_BOTH explicit operator bool() const { return data != nullptr; }
  MH_BOTH int64_t at(int64_t b, int64_t h = 0, int64_t i = 0, int64_t j = 0) const {
    return b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
  }
};

// One sequence: Sequence of kernels/attention.h in 32 bits.
struct Span {
  int batch = 0;
  int q_begin = 0, q_len = 0;
  int k_begin = 0, k_len = 0;
  int position = 0;
  int prefix = 0;
};

enum class Likeness : uint8_t { dot, cosine, euclidean };

inline constexpr int kMasks = 4;
inline constexpr int kFar = 1 << 30;  // a bound that bounds nothing; twice it still fits an int

struct Dense {
  Array where;
  bool keep = true;
};

struct Options {
  Likeness likeness = Likeness::dot;
  const float* scale = nullptr;  // (H)
  float cap = 0;
  int behind = kFar, ahead = kFar;
  bool has_prefix = false;
  Array q_documents, k_documents;  // i32, axes batch and row
  Dense dense[kMasks];
  int dense_count = 0;
  const float* relative = nullptr;  // (H, relative_count)
  int64_t relative_count = 0, relative_min = 0;
  const float* slopes = nullptr;  // (H), as attention_decode takes them
  Array bias;
  int64_t bias_size[4] = {1, 1, 1, 1};
  const float* sink = nullptr;  // (H)
  uint32_t dropout_threshold = 0;
  uint64_t dropout_seed = 0;
};

struct Call {
  int B = 0, H = 0, Hkv = 0, Dk = 0, Dv = 0;  // B: sequences
  int Tq = 0, Tk = 0;                         // of the longest sequence
  int batch = 0, q_rows = 0, k_rows = 0;      // sizes of the arrays: entries, rows of q, rows of k
  const Span* spans = nullptr;  // of the device, B of them; null: every sequence is `span`, in its own entry
  Span span;
  Options options;
  Array q, k, v, k_scale, v_scale, pages;
  int page = 0;
  Array o, lse;
  Array d_o, d_lse, dq, dk, dv, dbias;
  float *drelative = nullptr, *dsink = nullptr, *dscale = nullptr;
};

MH_BOTH inline Span span_of(const Call& call, int b) {
  if (call.spans) return call.spans[b];
  Span span = call.span;
  span.batch = b;
  return span;
}

}  // namespace mh::kernels::cuda
