/* Attention on your own buffers from C, forward and backward. */
#include <math.h>
#include <stdio.h>

#include "multihead/c.h"

enum { BATCH = 1, HEADS = 2, TIME = 16, WIDTH = 32, COUNT = BATCH * HEADS * TIME * WIDTH };

static float q[COUNT], k[COUNT], v[COUNT], o[COUNT], lse[BATCH * HEADS * TIME];
static float d_o[COUNT], dq[COUNT], dk[COUNT], dv[COUNT];

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, mh_last_error());
  return 1;
}

int main(void) {
  const int64_t extent[] = {BATCH, HEADS, TIME, WIDTH};
  const mh_array q_array = mh_dense(q, MH_F32, 4, extent), k_array = mh_dense(k, MH_F32, 4, extent),
                 v_array = mh_dense(v, MH_F32, 4, extent);
  const mh_array o_array = mh_dense(o, MH_F32, 4, extent), lse_array = mh_dense(lse, MH_F32, 3, extent);
  const mh_array d_o_array = mh_dense(d_o, MH_F32, 4, extent), dq_array = mh_dense(dq, MH_F32, 4, extent);
  const mh_array dk_array = mh_dense(dk, MH_F32, 4, extent), dv_array = mh_dense(dv, MH_F32, 4, extent);
  mh_attention_call call = {sizeof call, &q_array, &k_array, &v_array, &o_array, &lse_array, NULL, NULL};
  mh_attention_options options = {0};
  mh_attention_gradients gradients = {0};
  double sum = 0;
  int n;

  for (n = 0; n < COUNT; ++n) {
    q[n] = (float)sin(0.1 * n);
    k[n] = (float)cos(0.2 * n);
    v[n] = (float)sin(0.3 * n);
    d_o[n] = 1;
  }

  options.size = sizeof options;
  options.causal = 1;
  if (mh_attention_forward(&call, &options) != MH_OK) return failed("forward");

  call.d_o = &d_o_array;
  gradients.size = sizeof gradients;
  gradients.dq = &dq_array;
  gradients.dk = &dk_array;
  gradients.dv = &dv_array;
  if (mh_attention_backward(&call, &options, &gradients) != MH_OK) return failed("backward");

  /* Weights of a row add up to 1, so with d_o = 1 everywhere the gradients of v add up to the number of outputs. */
  for (n = 0; n < COUNT; ++n) sum += dv[n];
  printf("multihead %s: sum of dv = %.3f, expected %d\n", mh_version(), sum, COUNT);
  if (fabs(sum - COUNT) > 1e-2) return 1;

  /* A mistake is a code and a sentence, never a crash. */
  call.k = NULL;
  if (mh_attention_forward(&call, &options) != MH_INVALID_ARGUMENT) return 1;
  printf("refused: %s\n", mh_last_error());
  return 0;
}
