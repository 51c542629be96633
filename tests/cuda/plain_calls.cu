// Attention on contiguous (B, H, T, D) tensors behind a C interface, for bench/cuda/table.py.
#include "multihead/kernels/cuda/entry.h"
#include "multihead/kernels/cuda/plan.h"

// What it fills: the same order and types. Outside the unnamed namespace, or what takes it would not be exported.
struct Plain {
  void *q, *k, *v, *o, *lse, *d_o, *dq, *dk, *dv, *workspace, *stream;
  const float* scale;
  int B, H, Hkv, Tq, Tk, D, type, causal, behind, generic;
  int forward_shape, dq_shape, dkv_shape;  // places in hopper/shapes.h; -1: the plan's choice
  const float *bias, *slopes;              // (Tq, Tk) for all, (H), or null
  float cap, drop;
};

namespace {

using namespace mh::kernels::cuda;

Array dense(void* data, Element type, int heads, int rows, int width) {
  return {data, type, {static_cast<int64_t>(heads) * rows * width, static_cast<int64_t>(rows) * width, width, 1}};
}

Call call_of(const Plain& p) {
  Call c;
  const auto type = static_cast<Element>(p.type);
  c.B = c.batch = p.B, c.H = p.H, c.Hkv = p.Hkv, c.Dk = c.Dv = p.D, c.Tq = c.q_rows = p.Tq, c.Tk = c.k_rows = p.Tk;
  c.span.q_len = p.Tq, c.span.k_len = p.Tk, c.span.position = p.Tk - p.Tq;
  c.options.scale = p.scale;
  if (p.causal) c.options.ahead = 0;
  if (p.behind >= 0) c.options.behind = p.behind;
  if (p.bias) c.options.bias = {const_cast<float*>(p.bias), Element::f32, {0, 0, p.Tk, 1}};
  c.options.slopes = p.slopes;
  c.options.cap = p.cap;
  c.options.dropout_threshold = static_cast<uint32_t>(p.drop * 65536);
  c.q = dense(p.q, type, p.H, p.Tq, p.D), c.o = dense(p.o, type, p.H, p.Tq, p.D),
  c.d_o = dense(p.d_o, type, p.H, p.Tq, p.D);
  c.dq = dense(p.dq, type, p.H, p.Tq, p.D), c.k = dense(p.k, type, p.Hkv, p.Tk, p.D),
  c.v = dense(p.v, type, p.Hkv, p.Tk, p.D);
  c.dk = dense(p.dk, type, p.Hkv, p.Tk, p.D), c.dv = dense(p.dv, type, p.Hkv, p.Tk, p.D);
  c.lse = {p.lse, Element::f32, {static_cast<int64_t>(p.H) * p.Tq, p.Tq, 1, 0}};
  return c;
}

}  // namespace

extern "C" long long mh_plain_workspace(const Plain* p) {
  const Call c = call_of(*p);
  const int64_t a = forward_workspace(c), b = backward_workspace(c);
  return a > b ? a : b;
}
extern "C" int mh_plain_forward(const Plain* p) {
  if (p->forward_shape >= 0)
    return forward_hopper(call_of(*p), p->forward_shape, static_cast<uint16_t*>(p->workspace),
                          static_cast<cudaStream_t>(p->stream));
  return attention_forward(call_of(*p), p->workspace, static_cast<cudaStream_t>(p->stream),
                           p->generic ? Route::generic : Route::best);
}
extern "C" int mh_plain_backward(const Plain* p) {
  if (p->dq_shape >= 0) {
    const Call c = call_of(*p);
    Rows rows;
    rows.padded = padded_rows(c.Tq);
    const int64_t count = int64_t{c.B} * c.H * rows.padded + 256;
    float* at = static_cast<float*>(p->workspace);
    rows.lse2 = at, rows.delta = at + count, rows.tau = at + 2 * count;
    const auto stream = static_cast<cudaStream_t>(p->stream);
    const cudaError_t error = backward_rows(c, rows, stream);
    return error != cudaSuccess ? error
                                : backward_hopper(c, p->dq_shape, p->dkv_shape, rows,
                                                  reinterpret_cast<uint16_t*>(at + 3 * count), stream);
  }
  return attention_backward(call_of(*p), p->workspace, static_cast<cudaStream_t>(p->stream),
                            p->generic ? Route::generic : Route::best);
}

// Which configurations of a kernel (0: forward, 1: dQ, 2: dK and dV) take heads of D of this type, masked or not.
extern "C" int mh_shape_count(int kernel) { return kernel == 0 ? kForwardCount : kernel == 1 ? kDqCount : kDkvCount; }
extern "C" int mh_shape_takes(int kernel, int n, int type, int D, int masked) {
  auto takes = [&](const auto& e) { return static_cast<int>(e.type) == type && e.D == D && e.masked == (masked != 0); };
  return kernel == 0 ? takes(kForwardShapes[n]) : kernel == 1 ? takes(kDqShapes[n]) : takes(kDkvShapes[n]);
}
extern "C" int mh_planned_shape(int kernel, const Plain* p) {
  const Call c = call_of(*p);
  return kernel == 0 ? forward_shape(c) : kernel == 1 ? dq_shape(c) : dkv_shape(c);
}
