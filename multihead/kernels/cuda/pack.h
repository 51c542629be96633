// From the argument structs of kernels/attention.h to a Call.
#pragma once

#include <algorithm>
#include <vector>

#include "multihead/kernels/attention.h"
#include "multihead/kernels/cuda/call.h"

namespace mh::kernels::cuda {

// spans is empty where all sequences are alike, each in its own batch entry; else the caller copies it to the device
// and sets call.spans. Everything else in `call` points where the arguments pointed.
struct Packed {
  Call call;
  std::vector<Span> spans;
};

inline Element element_of(DType type) {
  switch (type) {
    case DType::bf16: return Element::bf16;
    case DType::f16: return Element::f16;
    case DType::i8: return Element::i8;
    case DType::u8:
    case DType::boolean: return Element::u8;
    case DType::i32: return Element::i32;
    default: return Element::f32;
  }
}

inline Array array_of(const View& view) {
  Array out;
  out.data = view.data;
  out.type = element_of(view.dtype);
  for (int axis = 0; axis < 4; ++axis) out.stride[axis] = view.stride[axis];
  return out;
}

inline int bound_of(int64_t distance) { return static_cast<int>(std::min<int64_t>(distance, kFar)); }

inline Options options_of(const Scores& s) {
  Options out;
  out.likeness = static_cast<Likeness>(s.similarity);
  out.scale = s.scale;
  out.cap = s.cap;
  out.behind = bound_of(s.behind);
  out.ahead = bound_of(s.ahead);
  out.has_prefix = s.has_prefix;
  if (s.q_documents) out.q_documents = array_of(s.q_documents), out.k_documents = array_of(s.k_documents);
  out.dense_count = s.dense_count;
  for (int n = 0; n < s.dense_count; ++n) out.dense[n] = {array_of(s.dense[n].where), s.dense[n].keep};
  out.relative = s.relative;
  out.relative_count = s.relative_count;
  out.relative_min = s.relative_min;
  out.slopes = s.slopes ? s.slopes.as<float>() : nullptr;
  if (s.bias) {
    out.bias = array_of(s.bias);
    for (int axis = 0; axis < 4; ++axis) out.bias_size[axis] = s.bias.stride[axis] == 0 ? 1 : s.bias.size[axis];
  }
  out.sink = s.sink;
  out.dropout_threshold = s.dropout_threshold;
  out.dropout_seed = s.dropout_seed;
  return out;
}

inline Span span_of(const Sequence& s) {
  return {static_cast<int>(s.batch),   static_cast<int>(s.q_begin), static_cast<int>(s.q_len),
          static_cast<int>(s.k_begin), static_cast<int>(s.k_len),   static_cast<int>(s.position),
          static_cast<int>(s.prefix)};
}

inline bool alike(const Span& a, const Span& b) {
  return a.q_begin == b.q_begin && a.q_len == b.q_len && a.k_begin == b.k_begin && a.k_len == b.k_len &&
         a.position == b.position && a.prefix == b.prefix;
}

template <class Args>
Packed pack_inputs(const Args& a) {
  Packed out;
  Call& c = out.call;
  c.B = static_cast<int>(a.sequences.count);
  c.H = static_cast<int>(a.q.size[1]);
  c.Hkv = static_cast<int>(a.kv.k.size[1]);
  c.Dk = static_cast<int>(a.q.size[3]);
  c.Dv = static_cast<int>(a.kv.v.size[3]);
  c.batch = static_cast<int>(a.q.size[0]);
  c.q_rows = static_cast<int>(a.q.size[2]);
  c.k_rows = static_cast<int>(a.kv.k.size[2]);
  c.q = array_of(a.q);
  c.k = array_of(a.kv.k);
  c.v = array_of(a.kv.v);
  if (a.kv.k_scale) c.k_scale = array_of(a.kv.k_scale), c.v_scale = array_of(a.kv.v_scale);
  if (a.kv.pages) c.pages = array_of(a.kv.pages), c.page = c.k_rows;
  c.options = options_of(a.scores);
  bool same = true;
  for (int b = 0; b < c.B; ++b) {
    out.spans.push_back(span_of(a.sequences.data[b]));
    const Span& span = out.spans.back();
    c.Tq = std::max(c.Tq, span.q_len);
    c.Tk = std::max(c.Tk, span.k_len);
    same = same && span.batch == b && alike(span, out.spans[0]);
  }
  if (c.B > 0) c.span = out.spans[0];
  if (same) out.spans.clear();
  c.o = array_of(a.o);
  c.lse = array_of(a.lse);
  return out;
}

inline Packed pack(const AttentionForwardArgs& a) { return pack_inputs(a); }

inline Packed pack(const AttentionBackwardArgs& a) {
  Packed out = pack_inputs(a);
  Call& c = out.call;
  c.d_o = array_of(a.d_o);
  c.d_lse = array_of(a.d_lse);
  c.dq = array_of(a.dq);
  c.dk = array_of(a.dk);
  c.dv = array_of(a.dv);
  c.dbias = array_of(a.dbias);
  c.drelative = a.drelative;
  c.dsink = a.dsink;
  c.dscale = a.dscale;
  return out;
}

}  // namespace mh::kernels::cuda
