// bf16 attention over tiles: every body in order, and which calls it takes. The kinds of tiles stand before it.

#include "multihead/kernels/cpu/attention/tiles/backward.inl"
#include "multihead/kernels/cpu/attention/tiles/backward_tasks.inl"
#include "multihead/kernels/cpu/attention/tiles/bias.inl"
#include "multihead/kernels/cpu/attention/tiles/dropout.inl"
#include "multihead/kernels/cpu/attention/tiles/find.inl"
#include "multihead/kernels/cpu/attention/tiles/forward.inl"
#include "multihead/kernels/cpu/attention/tiles/gradient.inl"
#include "multihead/kernels/cpu/attention/tiles/keys.inl"
#include "multihead/kernels/cpu/attention/tiles/mean.inl"
#include "multihead/kernels/cpu/attention/tiles/scores.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/attention/tiles/spans.inl"
#include "multihead/kernels/cpu/attention/tiles/step.inl"
#include "multihead/kernels/cpu/attention/tiles/write.inl"
#include "multihead/kernels/cpu/tile_pack.inl"

// bf16 that lies in rows; f32, f16, int8 and paged caches stay with the rung below.
inline bool tiles_take(const View& q, const KeyValues& kv) {
  return q.dtype == DType::bf16 && kv.k.dtype == DType::bf16 && kv.v.dtype == DType::bf16 && !kv.pages;
}

template <class Tiles>
struct TileAttention {
  static inline Table below;

  static void forward(const AttentionForwardArgs& a, Queue& queue) {
    if (tiles_take(a.q, a.kv))
      attention_forward_tiles<Tiles>(a);
    else
      below.attention_forward(a, queue);
  }
  static void mean(const AttentionMeanArgs& m, Queue& queue) {
    if (tiles_take(m.call.q, m.call.kv))
      attention_mean_tiles<Tiles>(m);
    else
      below.attention_mean(m, queue);
  }
  static void backward(const AttentionBackwardArgs& a, Queue& queue) {
    if (tiles_take(a.q, a.kv))
      attention_backward_tiles<Tiles>(a);
    else
      below.attention_backward(a, queue);
  }

  static Table refine(Table table) {
    below = table;
    table.attention_forward.run = forward;
    table.attention_backward.run = backward;
    table.attention_mean.run = mean;
    return table;
  }
};
