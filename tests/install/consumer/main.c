/* A user's program in C: attention on its own arrays, a translation by the model in the folder it is given, and
   refusals, over the installed headers alone. */
#include <stdio.h>
#include <string.h>

#include "multihead/c.h"

static int translate(const char* folder) {
  const char* lines[] = {"Good morning!"};
  mh_texts texts;
  mh_model* model = NULL;
  mh_result* result = NULL;
  memset(&texts, 0, sizeof texts);
  texts.size = sizeof texts;
  texts.text = lines;
  texts.count = 1;
  if (mh_model_load(folder, NULL, &model) != MH_OK || mh_translate(model, &texts, NULL, &result) != MH_OK) {
    fprintf(stderr, "%s\n", mh_last_error());
    return 4;
  }
  const int right = strstr(mh_result_text(result), "\"text\":\"Guten Morgen!\"") != NULL;
  mh_result_free(result);
  mh_model_free(model);
  return right ? 0 : 5;
}

int main(int count, char** arguments) {
  /* One key: whatever the queries ask, the answer is its value. */
  float q[2 * 3 * 4], k[1 * 1 * 4] = {1, 2, 3, 4}, v[1 * 1 * 5] = {5, 6, 7, 8, 9}, o[2 * 3 * 5], lse[2 * 3];
  const int64_t q_size[] = {1, 2, 3, 4}, k_size[] = {1, 1, 1, 4}, v_size[] = {1, 1, 1, 5}, o_size[] = {1, 2, 3, 5};
  for (int n = 0; n < 24; ++n) q[n] = 0.1f * (float)n;
  const mh_array q_at = mh_dense(q, MH_F32, 4, q_size), k_at = mh_dense(k, MH_F32, 4, k_size);
  const mh_array v_at = mh_dense(v, MH_F32, 4, v_size), o_at = mh_dense(o, MH_F32, 4, o_size);
  const mh_array lse_at = mh_dense(lse, MH_F32, 3, q_size);

  mh_attention_call call;
  memset(&call, 0, sizeof call);
  call.size = sizeof call;
  call.q = &q_at;
  call.k = &k_at;
  call.v = &v_at;
  call.o = &o_at;
  call.lse = &lse_at;
  if (mh_attention_forward(&call, NULL) != MH_OK) {
    fprintf(stderr, "%s\n", mh_last_error());
    return 1;
  }
  for (int n = 0; n < 30; ++n)
    if (o[n] != v[n % 5]) return 2;

  call.v = &k_at;
  if (mh_attention_forward(&call, NULL) != MH_INVALID_ARGUMENT || strlen(mh_last_error()) == 0) return 3;
  printf("multihead %s from C; refused: %s\n", mh_version(), mh_last_error());
  if (mh_model_load("no such folder", NULL, NULL) != MH_INVALID_ARGUMENT) return 6;
  return count > 1 ? translate(arguments[1]) : 0;
}
