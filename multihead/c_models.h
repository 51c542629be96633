/* The C ABI for models: a folder is loaded, texts go in, JSON comes out. Which folder is for which task:
 * docs/models.md. */
#ifndef MULTIHEAD_C_MODELS_H
#define MULTIHEAD_C_MODELS_H

#include "multihead/c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The model in a folder. It may be used from many threads at once; mh_model_free waits for nobody. */
typedef struct mh_model mh_model;

typedef struct mh_model_options {
  size_t size;
  int32_t precision; /* of the products: MH_F32, or MH_BF16, which is faster where the machine has it */
  int32_t reserved;  /* 0 */
} mh_model_options;

/* Reads what the folder is for. Weights and tokenizer are read, and refused where they are damaged, by the first call
   of a task: one with no text does that alone. options may be null. */
MH_API mh_status mh_model_load(const char* folder, const mh_model_options* options, mh_model** out);
MH_API void mh_model_free(mh_model* model); /* null is left alone */
/* The task that the folder is for, as the program's verb for it: "classify", "tag", "answer", "fill", "embed",
   "generate", "translate", "summarise", or one that has no call here, "recommend"; "" where it has none. */
MH_API const char* mh_model_verb(const mh_model* model);

/* UTF-8 texts, each ended by a zero byte. */
typedef struct mh_texts {
  size_t size;
  const char* const* text;
  const char* const* pair; /* the second text of each: the context of a question; null where texts stand alone */
  int64_t count;
} mh_texts;

/* A JSON array with an element for each text, in their order: what the program's verb prints with --json for a line,
   the object or the array shown at each call. */
typedef struct mh_result mh_result;
MH_API const char* mh_result_text(const mh_result* result); /* ended by a zero byte; it lives as long as the result */
MH_API void mh_result_free(mh_result* result);              /* null is left alone */

/* Below, options may be null, and those filled with zeros but for `size` ask for the same. A folder of another task is
   refused by the name of the call that it is for. */

typedef struct mh_classify_options {
  size_t size;
  int32_t all;               /* every label's probability */
  int32_t multi;             /* of `labels`: several may be right */
  const char* const* labels; /* of your own, for a model of what follows from a text (NLI); null: the model's */
  int64_t label_count;
  const char* hypothesis; /* of `labels`: "This example is {}." where it is null */
} mh_classify_options;
/* {"label": "…", "score": 0.98}, with `all` also "scores": {label: score, …}, the highest first. A model of pairs reads
   `pair` too. */
MH_API mh_status mh_classify(const mh_model* model, const mh_texts* texts, const mh_classify_options* options,
                             mh_result** out);

/* How labels of tokens become those of entities: mh::Aggregation. */
typedef enum mh_aggregation {
  MH_BY_FIRST = 0,
  MH_BY_NONE = 1,
  MH_BY_SIMPLE = 2,
  MH_BY_AVERAGE = 3,
  MH_BY_MAX = 4
} mh_aggregation;
typedef struct mh_tag_options {
  size_t size;
  int32_t aggregation; /* mh_aggregation */
  int32_t has_stride;
  int64_t stride; /* tokens that neighbouring windows of a long text share; else 128 */
} mh_tag_options;
/* [{"begin": 0, "end": 3, "label": "PER", "score": 0.99, "text": "Ada"}, …]; begin and end count characters from 0. */
MH_API mh_status mh_tag(const mh_model* model, const mh_texts* texts, const mh_tag_options* options, mh_result** out);

typedef struct mh_answer_options {
  size_t size;
  int32_t no_answer; /* an empty answer where the model finds none */
  int32_t has_stride;
  int64_t stride;  /* tokens that neighbouring windows share; else 128 */
  int64_t window;  /* tokens that are read at once; 0 counts as 384 */
  int64_t longest; /* tokens of an answer; 0 counts as 15 */
} mh_answer_options;
/* `text` are the questions, `pair` their contexts. {"answer": "…", "score": 0.7, "begin": 4, "end": 9}; begin and end
   count the context's characters from 0. */
MH_API mh_status mh_answer(const mh_model* model, const mh_texts* questions, const mh_answer_options* options,
                           mh_result** out);

typedef struct mh_fill_options {
  size_t size;
  int64_t k; /* tokens for each gap; 0 counts as 5 */
} mh_fill_options;
/* Of each gap its tokens, the likeliest first: [[{"token": "…", "id": 7, "score": 0.4, "text": "…"}, …], …]. */
MH_API mh_status mh_fill(const mh_model* model, const mh_texts* texts, const mh_fill_options* options, mh_result** out);

typedef struct mh_embed_options {
  size_t size;
  const char* prompt;      /* stands before each text */
  const char* prompt_name; /* the same, by its name in the folder; both null: the folder's default */
} mh_embed_options;
/* vectors: f32 (texts, width), written. */
MH_API mh_status mh_embed(const mh_model* model, const mh_texts* texts, const mh_embed_options* options,
                          const mh_array* vectors);
MH_API mh_status mh_embed_width(const mh_model* model, int64_t* width);

/* Hears of the text behind a prompt as it is written, in whole characters: in order for each prompt, of several prompts
   from several threads at once. `text` has `bytes` bytes and a zero behind them. */
typedef void (*mh_on_text)(void* self, int64_t prompt, const char* text, size_t bytes);

/* How texts are written: as the folder says, but for what `config` has, a JSON object with keys of
   generation_config.json ("max_new_tokens", "num_beams", "do_sample", "temperature", "num_return_sequences", …); what a
   decoder begins with is the folder's. */
typedef struct mh_write_options {
  size_t size;
  const char* config;
  const char *from, *to; /* mh_translate: languages, as a model that knows several names them */
  const char* prefix;    /* mh_translate, mh_summarise: stands before every text, in place of the folder's */
  mh_on_text on_text;    /* mh_generate: for one text of each prompt, and no beam */
  void* self;            /* of on_text */
  int32_t has_seed;      /* else 1 */
  int32_t sentences; /* mh_translate: 1: each sentence of a text for itself; -1: a text is one; 0: as fits the model */
  int32_t details;   /* mh_translate: also tokens and alignment, for another run of the model */
  int32_t reserved;  /* 0 */
  uint64_t seed;     /* of what is drawn */
} mh_write_options;
/* {"line": 1, "prompt": "…", "text": "…", "tokens": 20, "ended": false, "score": -9.5}; line counts the prompts from 1.
   Of several texts for each prompt ("num_return_sequences"), one object for each, best first. */
MH_API mh_status mh_generate(const mh_model* model, const mh_texts* prompts, const mh_write_options* options,
                             mh_result** out);
/* {"line": 1, "rank": 1, "text": "…", "score": -0.12, "cut": false}, with `details` also "tokens": [{"text": "…",
   "log_p": -0.2}, …] and "alignment": [[source word, target word], …]. Of several translations one object for each. */
MH_API mh_status mh_translate(const mh_model* model, const mh_texts* texts, const mh_write_options* options,
                              mh_result** out);
/* {"line": 1, "text": "…", "tokens": 12, "source_tokens": 90, "cut": false, "ended": true, "score": -0.3}. */
MH_API mh_status mh_summarise(const mh_model* model, const mh_texts* texts, const mh_write_options* options,
                              mh_result** out);

#ifdef __cplusplus
}
#endif

#endif
