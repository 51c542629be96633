/* What every part of the C ABI shares: codes and sentences of what fails, arrays, threads. */
#ifndef MULTIHEAD_C_BASE_H
#define MULTIHEAD_C_BASE_H

#include <stddef.h>
#include <stdint.h>

#define MH_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* What can fail returns one of these; mh_last_error() then holds one sentence, and nothing was written. */
typedef enum mh_status {
  MH_OK = 0,
  MH_INVALID_ARGUMENT = 1,
  MH_UNSUPPORTED = 2,
  MH_IO = 3,
  MH_INTERNAL = 4,
  MH_OUT_OF_MEMORY = 5
} mh_status;

/* clang-format off */
typedef enum mh_dtype {
  MH_F32 = 0, MH_BF16 = 1, MH_F16 = 2, MH_F64 = 3, MH_I8 = 4, MH_U8 = 5, MH_I32 = 6, MH_I64 = 7, MH_BOOL = 8
} mh_dtype;
/* clang-format on */

#define MH_MAX_RANK 6

/* Where an array lies. Sizes and strides count elements; the first `rank` of them are read. */
typedef struct mh_array {
  void* data;
  int32_t dtype; /* mh_dtype */
  int32_t rank;
  int64_t extent[MH_MAX_RANK];
  int64_t stride[MH_MAX_RANK];
} mh_array;

/* A dense array: the last axis has stride 1. Reads `rank` extents, at most MH_MAX_RANK. */
MH_API mh_array mh_dense(void* data, mh_dtype dtype, int32_t rank, const int64_t* extent);

/* `size`, the first field of a struct here, is sizeof of the struct the caller was compiled with: a shorter one is
   filled up with zeros, of a longer one the rest must be zero, or the call is refused as asking for what this version
   does not know. */

/* Of this thread's last call that failed; "" where none did. Valid until the next one fails. */
MH_API const char* mh_last_error(void);
MH_API const char* mh_version(void);

MH_API int32_t mh_threads(void);
MH_API mh_status mh_set_threads(int32_t count); /* 1 to 1024 */
/* The caller's threads: run must call task(context, i) once for each i below count, started in ascending order, and
   return when all are done. A null run gives the work back to the library's own threads. */
typedef void (*mh_task)(void* context, int64_t index);
typedef void (*mh_run)(void* self, int64_t count, mh_task task, void* context);
MH_API mh_status mh_set_executor(mh_run run, void* self);

#ifdef __cplusplus
}
#endif

#endif
