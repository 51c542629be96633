// Which kernel computes a call, in which configuration, and why not a faster one: pure functions of the call.
#pragma once

#include <initializer_list>

#include "multihead/kernels/cuda/hopper/shapes.h"

namespace mh::kernels::cuda {

inline int whole_tiles(int64_t n, int each) { return static_cast<int>((n + each - 1) / each); }

inline bool is_masked(const Options& o) { return o.behind < kFar || o.ahead < kFar || o.has_prefix; }

// TMA reads rows of 16-byte units at strides of 16 bytes.
inline bool tma_reads(const Array& a, int64_t width) {
  if (reinterpret_cast<uintptr_t>(a.data) % 16 != 0 || a.stride[3] != 1 || width % 8 != 0) return false;
  for (int axis = 0; axis < 3; ++axis)
    if (a.stride[axis] % 8 != 0 || a.stride[axis] < 0) return false;
  return true;
}

// Options that change scores pair by pair.
inline const char* pair_option(const Options& o) {
  if (o.cap > 0) return "scores are capped";
  if (o.dropout_threshold != 0) return "dropout";
  if (o.q_documents || o.dense_count > 0) return "a document or dense mask";
  if (o.relative || o.slopes || o.bias) return "a bias";
  return nullptr;
}

// Why the wgmma kernels do not take the call; null: they do.
inline const char* hopper_refuses(const Call& call, int widest) {
  const Options& o = call.options;
  if (call.q.type != Element::bf16 && call.q.type != Element::f16) return "the tensor cores' kernels take bf16 and f16";
  if (call.k.type != call.q.type || call.pages) return "the keys are paged or quantized";
  if (call.Dk > widest || call.Dv > widest)
    return widest == 128 ? "heads are wider than 128" : "heads are wider than 256";
  if (call.Tk == 0 || call.Tq == 0) return "there are no keys or no rows";
  if (o.likeness != Likeness::dot) return "the similarity is not the dot product";
  if (!tma_reads(call.q, call.Dk) || !tma_reads(call.k, call.Dk) || !tma_reads(call.v, call.Dv))
    return "rows are not aligned to 16 bytes";
  return nullptr;
}
inline const char* hopper_refuses_forward(const Call& call) {
  if (const char* why = hopper_refuses(call, 256)) return why;
  return tma_reads(call.o, call.Dv) ? nullptr : "rows of o are not aligned to 16 bytes";
}
inline const char* hopper_refuses_backward(const Call& call) {
  if (const char* why = hopper_refuses(call, 128)) return why;
  if (const char* why = pair_option(call.options)) return why;
  if (!call.dq || !call.dk || !call.dv) return "not all of dq, dk and dv are wanted";
  for (const Array* a : {&call.dq, &call.dk})
    if (!tma_reads(*a, call.Dk)) return "rows of a gradient are not aligned to 16 bytes";
  for (const Array* a : {&call.dv, &call.d_o, &call.o})
    if (!tma_reads(*a, call.Dv)) return "rows of a gradient are not aligned to 16 bytes";
  return nullptr;
}

// Whether chunks of 64 columns fill every row: then one TMA brings a tile.
inline bool whole_chunks(const Call& call) { return call.Dk == 128 && call.Dv == 128; }

inline int kernel_width(const Call& call) { return whole_tiles(call.Dk > call.Dv ? call.Dk : call.Dv, 64) * 64; }

// The tile grows with the length where it won on an H200 (16k tokens, hidden 2048).
inline int forward_shape(const Call& call) {
  const bool masked = is_masked(call.options), wide = kernel_width(call) == 128, f16 = call.q.type == Element::f16;
  if (pair_option(call.options) || kernel_width(call) > 128) return (f16 ? 15 : 11) + kernel_width(call) / 64 - 1;
  if (f16) return wide ? 6 + masked : 8 + masked;
  if (wide) return masked;
  if (!masked) return call.Tq < 2048 ? 2 : 3;
  return call.Tq <= 2048 ? 10 : 5;
}
inline int dq_shape(const Call& call) {
  const bool masked = is_masked(call.options), wide = kernel_width(call) == 128;
  if (call.q.type == Element::f16) return wide ? 6 + masked : 8 + masked;
  if (masked) return !wide ? 5 : call.Tq < 4096 ? 2 : 10;
  if (wide) return call.Tq < 1024 || call.Tq >= 8192 ? 0 : 1;
  return call.Tq <= 4096 ? 3 : 4;
}
inline int dkv_shape(const Call& call) {
  const bool masked = is_masked(call.options), wide = kernel_width(call) == 128;
  if (call.q.type == Element::f16) return wide ? 6 + masked : 8 + masked;
  if (!wide) return masked ? 5 : 4;
  if (masked) return call.Tq < 4096 ? 2 : 3;
  return call.Tq < 1024 ? 0 : 1;
}

// Heads whose keys and values (`bytes` each) fit 24 MB of L2 together.
inline int heads_in_l2(int heads, int64_t bytes) {
  const int64_t fit = (int64_t{24} << 20) / (bytes > 0 ? bytes : 1);
  return static_cast<int>(fit < 1 ? 1 : fit > heads ? heads : fit);
}

// Decode: one query a sequence; up to 8 heads share a key head's reads.
inline const char* decode_refuses(const Call& call) {
  if (const char* why = hopper_refuses_forward(call)) return why;
  if (call.Tq != 1) return "more than one query";
  if (const char* why = pair_option(call.options)) return why;
  if (call.H / call.Hkv > 8) return "more than 8 query heads share a key head";
  if (call.Dk != call.Dv || (call.Dk != 64 && call.Dk != 128)) return "heads are not 64 or 128 wide";
  if (call.options.sink) return "a sink";
  return nullptr;
}

// Keys of a chunk, by the sequence's own length alone: batch companions do not change a bit.
MH_BOTH inline int decode_chunk(int k_len) {
  if (k_len <= 8192) return 128;
  const int each = (k_len / 128 + 63) / 64 * 64;
  return each < 256 ? 256 : each;
}
MH_BOTH inline int decode_chunks(int k_len) {
  const int each = decode_chunk(k_len);
  return (k_len + each - 1) / each;
}
// No sequence of at most `longest` keys has more.
inline int most_decode_chunks(int longest) {
  const int short_ones = decode_chunks(longest < 8192 ? longest : 8192), long_ones = decode_chunks(longest);
  return short_ones > long_ones ? short_ones : long_ones;
}

// Rows of lse2 and delta per head: tiles of up to 192 rows read past the end; 16-byte units.
inline int padded_rows(int Tq) { return (Tq + 127) / 128 * 128 + 192; }

inline int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

inline int64_t forward_workspace(const Call& call) {
  const int64_t flags = int64_t{32} * call.B * call.H * whole_tiles(call.Tq, 64);
  const int64_t chunks = call.Tq == 1 ? int64_t{call.B} * call.H * most_decode_chunks(call.Tk < 1 ? 1 : call.Tk) : 0;
  return aligned(flags) + aligned(chunks * 4) + aligned(chunks * call.Dv * 4) + 256;
}
inline int64_t backward_flags(const Call& call) {
  return int64_t{16} * call.B *
         (int64_t{call.H} * whole_tiles(call.Tq, 128) + int64_t{call.Hkv} * whole_tiles(call.Tk, 128));
}
inline int64_t backward_workspace(const Call& call) {
  const int64_t rows = int64_t{call.B} * call.H * padded_rows(call.Tq) + 256;
  const int64_t flags = 2 * backward_flags(call);
  return 3 * aligned(rows * 4) + aligned(flags) + 256;
}

}  // namespace mh::kernels::cuda
