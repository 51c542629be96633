/* The C ABI compiled as C: values, gradients, weights, explanations, threads, and every kind of bad input. */
#define _POSIX_C_SOURCE 200809L
#include "multihead/c.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int failures = 0;

#define EXPECT(holds)                                                                              \
  do {                                                                                             \
    if (!(holds)) {                                                                                \
      printf("%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #holds, mh_last_error()); \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

/* One sentence that says `part`, from a call that failed with `status`. */
#define REFUSES(call, status, part)                \
  do {                                             \
    EXPECT((call) == (status));                    \
    EXPECT(strstr(mh_last_error(), part) != NULL); \
  } while (0)

enum { B = 2, H = 4, HKV = 2, TQ = 3, TK = 5, DK = 8, DV = 6 };

static float q_data[B * H * TQ * DK], k_data[B * HKV * TK * DK], v_data[B * HKV * TK * DV];
static float o_data[B * H * TQ * DV], lse_data[B * H * TQ], d_o_data[B * H * TQ * DV];
static const int64_t q_extent[] = {B, H, TQ, DK}, k_extent[] = {B, HKV, TK, DK}, v_extent[] = {B, HKV, TK, DV};
static const int64_t o_extent[] = {B, H, TQ, DV}, lse_extent[] = {B, H, TQ};

static mh_array q, k, v, o, lse, d_o;
static mh_attention_call call;
static mh_attention_options options;

static void fill(float* data, size_t count, unsigned seed) {
  size_t n;
  for (n = 0; n < count; ++n) {
    seed = seed * 1664525u + 1013904223u;
    data[n] = (float)(seed >> 8) / 8388608.0f - 1.0f;
  }
}

static void prepare(void) {
  fill(q_data, sizeof q_data / sizeof *q_data, 1);
  fill(k_data, sizeof k_data / sizeof *k_data, 2);
  fill(v_data, sizeof v_data / sizeof *v_data, 3);
  fill(d_o_data, sizeof d_o_data / sizeof *d_o_data, 4);
  q = mh_dense(q_data, MH_F32, 4, q_extent);
  k = mh_dense(k_data, MH_F32, 4, k_extent);
  v = mh_dense(v_data, MH_F32, 4, v_extent);
  o = mh_dense(o_data, MH_F32, 4, o_extent);
  lse = mh_dense(lse_data, MH_F32, 3, lse_extent);
  d_o = mh_dense(d_o_data, MH_F32, 4, o_extent);
  memset(&call, 0, sizeof call);
  call.size = sizeof call;
  call.q = &q;
  call.k = &k;
  call.v = &v;
  call.o = &o;
  call.lse = &lse;
  call.d_o = &d_o;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
}

/* o of one row by the definition, over its first `keys` keys. */
static void plain_row(int b, int h, int i, int keys, double* row) {
  double s[TK], sum = 0;
  int j, d;
  const float* query = q_data + ((b * H + h) * TQ + i) * DK;
  for (d = 0; d < DV; ++d) row[d] = 0;
  for (j = 0; j < keys; ++j) {
    const float* key = k_data + ((b * HKV + h / (H / HKV)) * TK + j) * DK;
    s[j] = 0;
    for (d = 0; d < DK; ++d) s[j] += (double)query[d] * key[d];
    s[j] = exp(s[j] / sqrt(DK));
    sum += s[j];
  }
  for (j = 0; j < keys; ++j) {
    const float* value = v_data + ((b * HKV + h / (H / HKV)) * TK + j) * DV;
    for (d = 0; d < DV; ++d) row[d] += s[j] / sum * value[d];
  }
}

static void values_are_right(void) {
  int b, h, i, d;
  double row[DV];
  prepare();
  options.causal = 1;
  EXPECT(mh_attention_forward(&call, &options) == MH_OK);
  for (b = 0; b < B; ++b) {
    for (h = 0; h < H; ++h) {
      for (i = 0; i < TQ; ++i) {
        plain_row(b, h, i, TK - TQ + i + 1, row);
        for (d = 0; d < DV; ++d) EXPECT(fabs(row[d] - o_data[((b * H + h) * TQ + i) * DV + d]) < 1e-5);
      }
    }
  }
  EXPECT(mh_attention_forward(&call, NULL) == MH_OK);
  plain_row(1, 3, 0, TK, row);
  EXPECT(fabs(row[0] - o_data[((1 * H + 3) * TQ) * DV]) < 1e-5);
}

/* The gradient of Σ o · d_o by one element of q, k and v, against finite differences. */
static double loss(void) {
  double sum = 0;
  size_t n;
  EXPECT(mh_attention_forward(&call, &options) == MH_OK);
  for (n = 0; n < sizeof o_data / sizeof *o_data; ++n) sum += (double)o_data[n] * d_o_data[n];
  return sum;
}

static void gradients_are_right(void) {
  static float dq_data[B * H * TQ * DK], dk_data[B * HKV * TK * DK], dv_data[B * HKV * TK * DV], dsink_data[H],
      sink_data[H];
  static const int64_t heads[] = {H};
  const mh_array dq = mh_dense(dq_data, MH_F32, 4, q_extent), dk = mh_dense(dk_data, MH_F32, 4, k_extent);
  const mh_array dv = mh_dense(dv_data, MH_F32, 4, v_extent), sink = mh_dense(sink_data, MH_F32, 1, heads);
  const mh_array dsink = mh_dense(dsink_data, MH_F32, 1, heads);
  float* const places[] = {q_data + 5, k_data + 9, v_data + 11, sink_data + 1};
  float* const grads[] = {dq_data + 5, dk_data + 9, dv_data + 11, dsink_data + 1};
  mh_attention_gradients out;
  int n;
  prepare();
  options.sink = &sink;
  memset(&out, 0, sizeof out);
  out.size = sizeof out;
  out.dq = &dq;
  out.dk = &dk;
  out.dv = &dv;
  out.dsink = &dsink;
  loss();
  EXPECT(mh_attention_backward(&call, &options, &out) == MH_OK);
  for (n = 0; n < 4; ++n) {
    const float before = *places[n];
    double up, down;
    *places[n] = before + 0.01f;
    up = loss();
    *places[n] = before - 0.01f;
    down = loss();
    *places[n] = before;
    EXPECT(fabs((up - down) / 0.02 - *grads[n]) < 2e-3);
  }
  loss();
  out.dtau = &dsink;
  REFUSES(mh_attention_backward(&call, &options, &out), MH_INVALID_ARGUMENT, "dtau is asked for");
  out.dtau = NULL;
  out.dslopes = &dsink;
  REFUSES(mh_attention_backward(&call, &options, &out), MH_INVALID_ARGUMENT, "dslopes is asked for");
  REFUSES(mh_attention_backward(&call, &options, NULL), MH_INVALID_ARGUMENT, "gradients is null");
}

static void weights_are_right(void) {
  static float weights_data[B * 1 * 2 * TK];
  static const int64_t extent[] = {B, 1, 2, TK};
  static const int32_t heads[] = {2}, rows[] = {2, 0};
  const mh_array weights = mh_dense(weights_data, MH_F32, 4, extent);
  mh_attention_choice choice;
  double sum = 0;
  int j;
  prepare();
  memset(&choice, 0, sizeof choice);
  choice.size = sizeof choice;
  choice.heads = heads;
  choice.head_count = 1;
  choice.rows = rows;
  choice.row_count = 2;
  EXPECT(mh_attention_forward(&call, &options) == MH_OK);
  EXPECT(mh_attention_weights(&call, &options, &choice, &weights) == MH_OK);
  for (j = 0; j < TK; ++j) sum += weights_data[j];
  EXPECT(fabs(sum - 1) < 1e-5);
  REFUSES(mh_attention_weights(&call, &options, NULL, &weights), MH_INVALID_ARGUMENT,
          "weights is f32 [2, 1, 2, 5]; expected f32 [2, 4, 3, 5]");
  REFUSES(mh_attention_weights(&call, &options, &choice, NULL), MH_INVALID_ARGUMENT, "weights is null");
  choice.head_count = 0;
  REFUSES(mh_attention_weights(&call, &options, &choice, &weights), MH_INVALID_ARGUMENT, "the list of heads is empty");
}

static void explanation_is_given(void) {
  mh_explanation said;
  prepare();
  memset(&said, 0, sizeof said);
  said.size = sizeof said;
  EXPECT(mh_attention_explain(&call, NULL, &said) == MH_OK);
  EXPECT(said.flops == 2 * B * H * TQ * TK * (DK + DV));
  EXPECT(said.composed == 0 && said.kernel[0] != 0 && said.rung[0] != 0);
  EXPECT(said.size == sizeof said);
}

static void null_pointers_are_refused(void) {
  size_t n;
  const mh_array** const fields[] = {&call.q, &call.k, &call.v, &call.o};
  mh_array none;
  prepare();
  for (n = 0; n < sizeof o_data / sizeof *o_data; ++n) o_data[n] = 7;
  REFUSES(mh_attention_forward(NULL, NULL), MH_INVALID_ARGUMENT, "call is null");
  for (n = 0; n < 4; ++n) {
    const mh_array* before = *fields[n];
    *fields[n] = NULL;
    REFUSES(mh_attention_forward(&call, NULL), MH_INVALID_ARGUMENT, "is null; expected an array");
    none = *before;
    none.data = NULL;
    *fields[n] = &none;
    REFUSES(mh_attention_forward(&call, NULL), MH_INVALID_ARGUMENT, "is null; expected its elements");
    *fields[n] = before;
  }
  REFUSES(mh_attention_explain(&call, NULL, NULL), MH_INVALID_ARGUMENT, "out is null");
  call.d_o = NULL;
  for (n = 0; n < sizeof o_data / sizeof *o_data; ++n) EXPECT(o_data[n] == 7);
}

static void bad_arrays_are_refused(void) {
  static const int64_t one[] = {1};
  static double wide[B * H * TQ * DK];
  int32_t boundary = 0;
  mh_array bad, boundaries;
  prepare();
  call.q = &bad;
  bad = q;
  bad.dtype = 99;
  REFUSES(mh_attention_forward(&call, NULL), MH_INVALID_ARGUMENT, "q has the element type 99");
  bad = q;
  bad.rank = 7;
  REFUSES(mh_attention_forward(&call, NULL), MH_INVALID_ARGUMENT, "q has rank 7");
  bad = q;
  bad.extent[0] = -1;
  REFUSES(mh_attention_forward(&call, NULL), MH_INVALID_ARGUMENT, "negative");
  bad = q;
  bad.extent[0] = bad.extent[1] = INT64_MAX;
  REFUSES(mh_attention_forward(&call, NULL), MH_INVALID_ARGUMENT, "q is not an array");
  bad = q;
  bad.stride[0] = INT64_MIN;
  REFUSES(mh_attention_forward(&call, NULL), MH_INVALID_ARGUMENT, "q is not an array");
  bad = q;
  bad.data = (char*)q_data + 1;
  REFUSES(mh_attention_forward(&call, NULL), MH_INVALID_ARGUMENT, "aligned");
  bad = q;
  bad.dtype = MH_F64;
  bad.data = wide;
  REFUSES(mh_attention_forward(&call, NULL), MH_UNSUPPORTED, "q holds f64");
  call.q = &q;
  call.o = &q;
  call.v = &k;
  REFUSES(mh_attention_forward(&call, NULL), MH_INVALID_ARGUMENT, "o shares memory with q");

  prepare();
  boundaries = mh_dense(&boundary, MH_I32, 1, one);
  options.cu_seqlens_q = &boundaries;
  REFUSES(mh_attention_forward(&call, &options), MH_INVALID_ARGUMENT, "expected both or none");
}

static void structs_may_be_shorter_or_longer(void) {
  union {
    mh_attention_options known;
    unsigned char bytes[sizeof(mh_attention_options) + 32];
  } longer;
  prepare();
  options.size = offsetof(mh_attention_options, causal);
  options.causal = 12345; /* past the size: not read */
  EXPECT(mh_attention_forward(&call, &options) == MH_OK);
  options.size = 0;
  REFUSES(mh_attention_forward(&call, &options), MH_INVALID_ARGUMENT, "the size of options is 0");
  options.size = SIZE_MAX;
  REFUSES(mh_attention_forward(&call, &options), MH_INVALID_ARGUMENT, "the size of options");
  memset(&longer, 0, sizeof longer);
  longer.known.size = sizeof longer;
  EXPECT(mh_attention_forward(&call, &longer.known) == MH_OK);
  longer.bytes[sizeof longer - 1] = 1;
  REFUSES(mh_attention_forward(&call, &longer.known), MH_UNSUPPORTED, "says something past");
}

static void options_that_contradict_are_refused(void) {
  prepare();
  options.similarity = MH_COSINE;
  options.has_scale = 1;
  options.scale = 0.5f;
  REFUSES(mh_attention_forward(&call, &options), MH_INVALID_ARGUMENT, "together with cosine similarity");
  options.has_scale = 0;
  EXPECT(mh_attention_forward(&call, &options) == MH_OK);
  options.similarity = 3;
  REFUSES(mh_attention_forward(&call, &options), MH_INVALID_ARGUMENT, "the similarity is 3");
  options.similarity = MH_DOT;
  options.dropout = 2;
  REFUSES(mh_attention_forward(&call, &options), MH_INVALID_ARGUMENT, "dropout p is 2");
}

/* Numbers of 64 bits are refused by their type, never cut to 32. */
static void wide_integers_are_refused(void) {
  static int64_t numbers[B * TK] = {4294967299, 4294967299};
  static const int64_t each[] = {B}, ids[] = {B, TK};
  const mh_array list = mh_dense(numbers, MH_I64, 1, each), documents = mh_dense(numbers, MH_I64, 2, ids);
  const mh_array** const fields[] = {&options.lengths, &options.offsets, &options.prefixes};
  size_t n;
  for (n = 0; n < 3; ++n) {
    prepare();
    *fields[n] = &list;
    REFUSES(mh_attention_forward(&call, &options), MH_INVALID_ARGUMENT, "i64 [2]; expected i32");
  }
  prepare();
  options.key_documents = &documents;
  REFUSES(mh_attention_forward(&call, &options), MH_INVALID_ARGUMENT, "i64 [2, 5]; expected i32");
  prepare();
  options.has_prefix = 1;
  options.prefix = 4294967299; /* a number of keys that all are below */
  EXPECT(mh_attention_forward(&call, &options) == MH_OK);
}

/* 8 GiB of biases by distance, where 2 more may be had. */
static void memory_that_cannot_be_had_has_a_code(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  static float weights_data[B * H * TQ * TK], slopes_data[H] = {1, 1, 1, 1};
  static int32_t offsets_data[B] = {0, 1 << 29};
  static const int64_t extent[] = {B, H, TQ, TK}, heads[] = {H}, each[] = {B};
  const mh_array weights = mh_dense(weights_data, MH_F32, 4, extent), slopes = mh_dense(slopes_data, MH_F32, 1, heads);
  const mh_array offsets = mh_dense(offsets_data, MH_I32, 1, each);
  struct rlimit before, less;
  FILE* const statm = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  EXPECT(statm != NULL && fscanf(statm, "%lu", &pages) == 1);
  if (statm) fclose(statm);
  prepare();
  EXPECT(mh_attention_forward(&call, &options) == MH_OK);
  options.alibi_slopes = &slopes;
  options.offsets = &offsets;
  EXPECT(getrlimit(RLIMIT_AS, &before) == 0);
  less = before;
  less.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)2 << 30);
  EXPECT(setrlimit(RLIMIT_AS, &less) == 0);
  REFUSES(mh_attention_weights(&call, &options, NULL, &weights), MH_OUT_OF_MEMORY, "bytes of memory");
  EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
  options.offsets = NULL;
  EXPECT(mh_attention_weights(&call, &options, NULL, &weights) == MH_OK);
#endif
}

static int64_t tasks_run = 0;
static void run_here(void* self, int64_t count, mh_task task, void* context) {
  int64_t n;
  (void)self;
  for (n = 0; n < count; ++n) task(context, n);
  tasks_run += count;
}

/* A gradient, because a forward pass this small is one task, which no executor is asked to run. */
static void threads_are_the_callers_choice(void) {
  static float dq_data[B * H * TQ * DK];
  float before[B * H * TQ * DK];
  const mh_array dq = mh_dense(dq_data, MH_F32, 4, q_extent);
  mh_attention_gradients out;
  prepare();
  memset(&out, 0, sizeof out);
  out.size = sizeof out;
  out.dq = &dq;
  EXPECT(mh_attention_forward(&call, NULL) == MH_OK);
  EXPECT(mh_attention_backward(&call, NULL, &out) == MH_OK);
  memcpy(before, dq_data, sizeof before);
  REFUSES(mh_set_threads(0), MH_INVALID_ARGUMENT, "threads");
  EXPECT(mh_set_threads(2) == MH_OK);
  EXPECT(mh_threads() == 2);
  EXPECT(mh_set_executor(run_here, NULL) == MH_OK);
  EXPECT(mh_attention_backward(&call, NULL, &out) == MH_OK);
  EXPECT(mh_set_executor(NULL, NULL) == MH_OK);
  EXPECT(tasks_run > 0);
  EXPECT(memcmp(before, dq_data, sizeof before) == 0);
}

int main(void) {
  EXPECT(mh_last_error()[0] == 0);
  EXPECT(mh_version()[0] != 0);
  values_are_right();
  gradients_are_right();
  weights_are_right();
  explanation_is_given();
  null_pointers_are_refused();
  bad_arrays_are_refused();
  structs_may_be_shorter_or_longer();
  options_that_contradict_are_refused();
  wide_integers_are_refused();
  memory_that_cannot_be_had_has_a_code();
  threads_are_the_callers_choice();
  printf("%d failures\n", failures);
  return failures != 0;
}
