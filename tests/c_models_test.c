/* The C ABI of models compiled as C: a translation by the model that comes with the project, and every kind of bad
 * input. */
#include <stdio.h>
#include <string.h>

#include "multihead/c.h"

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

static const char* const lines[] = {"Good morning!", ""};
static mh_model* model = NULL;
static mh_result* result = NULL;
static mh_texts texts;
static mh_write_options options;

static void prepare(void) {
  memset(&texts, 0, sizeof texts);
  texts.size = sizeof texts;
  texts.text = lines;
  texts.count = 2;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  result = NULL;
}

static void a_model_is_loaded_for_its_task(void) {
  mh_model_options bf16;
  mh_model* other = NULL;
  EXPECT(mh_model_load(MH_SHIPPED_MODEL, NULL, &model) == MH_OK);
  EXPECT(strcmp(mh_model_verb(model), "translate") == 0);
  memset(&bf16, 0, sizeof bf16);
  bf16.size = sizeof bf16;
  bf16.precision = MH_BF16;
  EXPECT(mh_model_load(MH_SHIPPED_MODEL, &bf16, &other) == MH_OK);
  mh_model_free(other);
  bf16.precision = MH_I8;
  other = NULL;
  REFUSES(mh_model_load(MH_SHIPPED_MODEL, &bf16, &other), MH_INVALID_ARGUMENT, "the precision is 4");
  REFUSES(mh_model_load("no/such/folder", NULL, &other), MH_IO, "'no/such/folder' is not there");
  REFUSES(mh_model_load(NULL, NULL, &other), MH_INVALID_ARGUMENT, "folder is null");
  REFUSES(mh_model_load(MH_SHIPPED_MODEL, NULL, NULL), MH_INVALID_ARGUMENT, "out is null");
  EXPECT(other == NULL);
}

static void lines_are_translated(void) {
  prepare();
  EXPECT(mh_translate(model, &texts, NULL, &result) == MH_OK);
  EXPECT(strstr(mh_result_text(result), "[{\"line\":1,\"rank\":1,\"text\":\"Guten Morgen!\",\"score\":") ==
         mh_result_text(result));
  EXPECT(strstr(mh_result_text(result), "{\"line\":2,\"rank\":1,\"text\":\"\"") != NULL);
  EXPECT(strstr(mh_result_text(result), "alignment") == NULL);
  mh_result_free(result);
  options.details = 1;
  options.config = "{\"num_return_sequences\": 2}";
  texts.count = 1;
  EXPECT(mh_translate(model, &texts, &options, &result) == MH_OK);
  EXPECT(strstr(mh_result_text(result), "\"rank\":2") != NULL);
  EXPECT(strstr(mh_result_text(result), "\"alignment\":[[0,0]") != NULL);
  mh_result_free(result);
  texts.count = 0;
  texts.text = NULL;
  EXPECT(mh_translate(model, &texts, NULL, &result) == MH_OK);
  EXPECT(strcmp(mh_result_text(result), "[]") == 0);
  mh_result_free(result);
}

static void null_pointers_are_refused(void) {
  const char* const holes[] = {"a", NULL};
  const int64_t extent[] = {2, 1};
  float numbers[2] = {7, 7};
  const mh_array vectors = mh_dense(numbers, MH_F32, 2, extent);
  int64_t width = 7;
  prepare();
  REFUSES(mh_translate(NULL, &texts, NULL, &result), MH_INVALID_ARGUMENT, "mh_translate: model is null");
  REFUSES(mh_classify(NULL, &texts, NULL, &result), MH_INVALID_ARGUMENT, "mh_classify: model is null");
  REFUSES(mh_tag(NULL, &texts, NULL, &result), MH_INVALID_ARGUMENT, "mh_tag: model is null");
  REFUSES(mh_answer(NULL, &texts, NULL, &result), MH_INVALID_ARGUMENT, "mh_answer: model is null");
  REFUSES(mh_fill(NULL, &texts, NULL, &result), MH_INVALID_ARGUMENT, "mh_fill: model is null");
  REFUSES(mh_embed(NULL, &texts, NULL, &vectors), MH_INVALID_ARGUMENT, "mh_embed: model is null");
  REFUSES(mh_embed_width(NULL, &width), MH_INVALID_ARGUMENT, "mh_embed_width: model is null");
  REFUSES(mh_generate(NULL, &texts, NULL, &result), MH_INVALID_ARGUMENT, "mh_generate: model is null");
  REFUSES(mh_summarise(NULL, &texts, NULL, &result), MH_INVALID_ARGUMENT, "mh_summarise: model is null");
  REFUSES(mh_translate(model, NULL, NULL, &result), MH_INVALID_ARGUMENT, "texts is null");
  REFUSES(mh_translate(model, &texts, NULL, NULL), MH_INVALID_ARGUMENT, "out is null");
  texts.text = holes;
  REFUSES(mh_translate(model, &texts, NULL, &result), MH_INVALID_ARGUMENT, "number 2 of text is null");
  texts.text = NULL;
  REFUSES(mh_translate(model, &texts, NULL, &result), MH_INVALID_ARGUMENT, "text is null; expected 2 strings");
  texts.count = -1;
  REFUSES(mh_translate(model, &texts, NULL, &result), MH_INVALID_ARGUMENT, "the number of text is -1");
  prepare();
  texts.pair = lines;
  REFUSES(mh_translate(model, &texts, NULL, &result), MH_INVALID_ARGUMENT, "pair is given");
  EXPECT(result == NULL && numbers[0] == 7 && width == 7);
  EXPECT(mh_result_text(NULL)[0] == 0 && mh_model_verb(NULL)[0] == 0);
  mh_result_free(NULL);
  mh_model_free(NULL);
}

static void another_task_is_refused_by_its_call(void) {
  prepare();
  REFUSES(mh_classify(model, &texts, NULL, &result), MH_INVALID_ARGUMENT, "use mh_translate");
  REFUSES(mh_generate(model, &texts, NULL, &result), MH_INVALID_ARGUMENT, "use mh_translate");
  EXPECT(result == NULL);
}

static void structs_may_be_shorter_or_longer(void) {
  union {
    mh_write_options known;
    unsigned char bytes[sizeof(mh_write_options) + 32];
  } longer;
  prepare();
  texts.count = 1;
  options.size = offsetof(mh_write_options, on_text);
  options.details = 12345; /* past the size: not read */
  options.reserved = 1;
  EXPECT(mh_translate(model, &texts, &options, &result) == MH_OK);
  EXPECT(strstr(mh_result_text(result), "alignment") == NULL);
  mh_result_free(result);
  memset(&longer, 0, sizeof longer);
  longer.known.size = sizeof longer;
  EXPECT(mh_translate(model, &texts, &longer.known, &result) == MH_OK);
  mh_result_free(result);
  result = NULL;
  longer.bytes[sizeof longer - 1] = 1;
  REFUSES(mh_translate(model, &texts, &longer.known, &result), MH_UNSUPPORTED, "says something past");
  texts.size = 3;
  REFUSES(mh_translate(model, &texts, NULL, &result), MH_INVALID_ARGUMENT, "the size of texts is 3");
  options.size = sizeof options;
  texts.size = sizeof texts;
  REFUSES(mh_translate(model, &texts, &options, &result), MH_INVALID_ARGUMENT, "a reserved field");
  EXPECT(result == NULL);
}

int main(void) {
  a_model_is_loaded_for_its_task();
  lines_are_translated();
  null_pointers_are_refused();
  another_task_is_refused_by_its_call();
  structs_may_be_shorter_or_longer();
  mh_model_free(model);
  printf("%d failures\n", failures);
  return failures != 0;
}
