/* The C ABI in C99: attention on the caller's arrays, and by the headers it brings models and their tasks. What every
   option of attention means: docs/semantics.md; worked examples: docs/c.md. */
#ifndef MULTIHEAD_C_H
#define MULTIHEAD_C_H

#include "multihead/c_base.h"
#include "multihead/c_models.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mh_similarity { MH_DOT = 0, MH_COSINE = 1, MH_EUCLIDEAN = 2 } mh_similarity;

/* Zero-filled with `size` set, it asks for plain attention with scale 1/sqrt(Dk). A null array is an option not taken.
 */
typedef struct mh_attention_options {
  size_t size;
  int32_t similarity; /* mh_similarity */
  int32_t has_scale;  /* scale counts; refused with MH_COSINE */
  float scale;
  float tau;            /* MH_COSINE: 0 counts as 1 */
  const mh_array* taus; /* MH_COSINE: f32 (H), in place of tau */
  float cap;            /* > 0: cap * tanh(s / cap) */
  float dropout;        /* 0 to 1 */
  uint64_t dropout_seed;

  int32_t causal;     /* keeps key <= position of the query */
  int32_t has_offset; /* query i sits at offset + i; else at (keys - queries) + i */
  int64_t offset;
  const mh_array* offsets; /* i32 (B), in place of offset */
  int32_t has_window;      /* keeps position - window_left <= key <= position + window_right; -1: unbounded */
  int32_t has_prefix;      /* causal, but the first `prefix` keys are seen by all */
  int64_t window_left, window_right, prefix;
  const mh_array* prefixes;        /* i32 (B), in place of prefix */
  const mh_array* lengths;         /* i32 (B): keys of each sequence */
  const mh_array* keep;            /* u8 or bool, broadcastable to (B, H, Tq, Tk): kept where non-zero */
  const mh_array* drop;            /* the same: dropped where non-zero */
  const mh_array* query_documents; /* i32 (B, Tq); null: the document of the key at the query's position */
  const mh_array* key_documents;   /* i32 (B, Tk) */

  const mh_array* bias;         /* f32, bf16 or f16, broadcastable to (B, H, Tq, Tk) */
  const mh_array* alibi_slopes; /* f32 (H) */
  const mh_array* t5_table;     /* f32 (buckets, H) */
  int64_t t5_max_distance;      /* 0 counts as 128 */
  int32_t t5_one_directional;
  int32_t reserved;         /* 0 */
  const mh_array* sink;     /* f32 (H) */
  const mh_array* head_mix; /* f32 (H, H) */
  const mh_array* key_mix;  /* f32 (Tk, Tk) */

  const mh_array* cu_seqlens_q; /* both: a packed batch, i32 (sequences + 1), first 0 */
  const mh_array* cu_seqlens_k;
} mh_attention_options;

/* q (B, H, Tq, Dk), k (B, Hkv, Tk, Dk), v (B, Hkv, Tk, Dv), o (B, H, Tq, Dv) of one float type, last stride 1; packed
   (T, H, D). lse f32 (B, H, Tq), packed (H, T). */
typedef struct mh_attention_call {
  size_t size;
  const mh_array *q, *k, *v;
  const mh_array *o, *lse;     /* forward: written, lse may be null; backward: read */
  const mh_array *d_o, *d_lse; /* backward: d_lse may be null */
} mh_attention_call;

/* options may be null. */
MH_API mh_status mh_attention_forward(const mh_attention_call* call, const mh_attention_options* options);

/* Where gradients go; null: not wanted. Types and shapes of what they belong to, f32 but for dq, dk, dv. */
typedef struct mh_attention_gradients {
  size_t size;
  const mh_array *dq, *dk, *dv;
  const mh_array *dbias, *dslopes, *dtable, *dsink;
  const mh_array* dtau; /* f32 (H) */
  const mh_array* dmix;
} mh_attention_gradients;
MH_API mh_status mh_attention_backward(const mh_attention_call* call, const mh_attention_options* options,
                                       const mh_attention_gradients* gradients);

/* Chosen heads and rows; null lists mean all. */
typedef struct mh_attention_choice {
  size_t size;
  const int32_t *heads, *rows;
  int64_t head_count, row_count;
} mh_attention_choice;
/* weights: f32 (B, heads, rows, Tk), before dropout. Reads q, k and lse of the call. choice may be null. */
MH_API mh_status mh_attention_weights(const mh_attention_call* call, const mh_attention_options* options,
                                      const mh_attention_choice* choice, const mh_array* weights);

typedef struct mh_explanation {
  size_t size;
  int64_t flops, bytes, scratch;
  int32_t composed;
  char kernel[32], rung[32];
  char why[256]; /* why not a faster one; cut to fit */
} mh_explanation;
/* What mh_attention_forward would do: reads the arrays of lengths and documents, not q, k, v. */
MH_API mh_status mh_attention_explain(const mh_attention_call* call, const mh_attention_options* options,
                                      mh_explanation* out);

#ifdef __cplusplus
}
#endif

#endif
