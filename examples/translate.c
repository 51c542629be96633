/* Translation, and whatever else a model's folder is for, from C: texts in, JSON out. usage: translate FOLDER [TEXT]…
 */
#include <stdio.h>
#include <string.h>

#include "multihead/c.h"

static int failed(void) {
  fprintf(stderr, "%s\n", mh_last_error());
  return 1;
}

int main(int count, char** arguments) {
  static const char* const greetings[] = {"Good morning!", "Where is the station?"};
  const int given = count > 2;
  const mh_texts texts = {.size = sizeof texts,
                          .text = given ? (const char* const*)(arguments + 2) : greetings,
                          .count = given ? count - 2 : 2};
  mh_model* model = NULL;
  mh_result* result = NULL;
  if (count < 2) {
    fprintf(stderr, "usage: translate FOLDER [TEXT]...\n");
    return 2;
  }
  if (mh_model_load(arguments[1], NULL, &model) != MH_OK) return failed();

  /* Two translations of each text, best first; without options the folder decides. */
  const mh_write_options options = {.size = sizeof options,
                                    .config = "{\"num_beams\": 4, \"num_return_sequences\": 2}"};
  const mh_status status = mh_translate(model, &texts, &options, &result);
  if (status == MH_OK)
    printf("%s\n", mh_result_text(result));
  else
    failed(); /* says which call the folder is for, where it is another */
  mh_result_free(result);
  mh_model_free(model);
  return status != MH_OK;
}
