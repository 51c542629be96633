// The AMX rung over its tiles: every body in order, and which calls it takes.

#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/tile_gemm.inl"
#include "multihead/kernels/cpu/attention_amx_keys.inl"
#include "multihead/kernels/cpu/attention_amx_softmax.inl"
#include "multihead/kernels/cpu/attention_amx_step.inl"
#include "multihead/kernels/cpu/attention_amx_forward.inl"
#include "multihead/kernels/cpu/attention_amx_gradient.inl"
#include "multihead/kernels/cpu/attention_amx_backward.inl"
#include "multihead/kernels/cpu/attention_amx_backward_tasks.inl"

// bf16 that lies in rows; f32, f16, int8 and paged caches stay with the rung below.
inline bool tiles_take(const View& q, const KeyValues& kv) {
  return q.dtype == DType::bf16 && kv.k.dtype == DType::bf16 && kv.v.dtype == DType::bf16 && !kv.pages;
}

template <class Tiles>
struct AmxAttention {
  static inline Table below;

  static void forward(const AttentionForwardArgs& a) {
    if (tiles_take(a.q, a.kv)) attention_forward_amx<Tiles>(a);
    else below.attention_forward(a);
  }
  static void backward(const AttentionBackwardArgs& a) {
    if (tiles_take(a.q, a.kv)) attention_backward_amx<Tiles>(a);
    else below.attention_backward(a);
  }

  static Table refine(Table table) {
    below = table;
    table.attention_forward.run = forward;
    table.attention_backward.run = backward;
    return table;
  }
};
