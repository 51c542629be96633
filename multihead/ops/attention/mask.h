// Which pairs of query and key attention keeps: typed pieces, joined with &.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

// A pair is kept where every piece keeps it. A default Mask keeps all.
//
// Query i of sequence b sits at position(i) = offset[b] + i; the default offset is len_k[b] - len_q[b], so that the
// last query sits at the last key (bottom-right, as FlashAttention >= 2.1; torch SDPA counts from the top left:
// from_torch_causal).
struct Mask {
  struct Dense {
    Tensor where;  // bool or u8, broadcastable to (B, H, Tq, Tk)
    bool keep;
  };
  std::vector<Dense> dense;
  std::vector<Tensor> lengths;      // i32 (B): keys j < lengths[b]; several: the smallest counts
  int64_t behind = -1, ahead = -1;  // -1: unbounded
  bool causal = false;
  std::optional<int64_t> offset;  // of every sequence
  Tensor offsets;                 // i32 (B), or empty
  std::optional<int64_t> prefix;
  Tensor prefixes;                        // i32 (B), or empty
  Tensor query_documents, key_documents;  // i32 (B, Tq), (B, Tk)
};

Mask keep(const Tensor& where);
Mask drop(const Tensor& where);
// Keeps the first lengths[b] keys of sequence b.
Mask lengths(const Tensor& lengths);
// Keeps j <= position(i).
Mask causal();
Mask causal(int64_t offset);
Mask causal(const Tensor& offsets);
// Keeps j <= i: what torch.nn.functional.scaled_dot_product_attention(is_causal=True) means.
Mask from_torch_causal();
// Keeps everything and says where the queries sit, for windows and relative biases without causal().
Mask positions(int64_t offset);
Mask positions(const Tensor& offsets);
// Keeps position(i) - left <= j <= position(i) + right; -1 is unbounded. Throws: invalid_argument below -1.
Mask window(int64_t left, int64_t right);
// Causal, but the first n keys are seen by all. Throws: invalid_argument for a negative n.
Mask prefix(int64_t n);
Mask prefix(const Tensor& n);
// Keeps pairs of one document. With one tensor, (B, Tk), a query has the document of the key at its position, and none
// (it keeps nothing) where that position is no key.
Mask documents(const Tensor& ids);
Mask documents(const Tensor& query_ids, const Tensor& key_ids);

// Throws: invalid_argument where both give offsets that differ, or both give documents or prefixes. What a tensor holds
// is checked by the call that uses the mask, except that two offset tensors are compared here.
Mask operator&(const Mask& a, const Mask& b);

}  // namespace mh
