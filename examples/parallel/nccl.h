/* NCCL, looked for at run time: the example runs without it, and nothing else of lpgemm knows it. */
#ifndef NCCL_H
#define NCCL_H

#include <cuda_runtime_api.h>

#include "parallel.h"

/* Joins the ranks: the first one's id is in join[JOIN_BYTES], after which all meet. `path` may be NULL. */
void nccl_open(const char *path, const rank *r);
void nccl_version(char *text, size_t bytes);
void nccl_sum(void *x, int64_t count, lpgemm_dtype_t type, cudaStream_t stream); /* in place, in stream order */
void nccl_check(void); /* fails if NCCL has noticed that something is wrong since */
void nccl_abort(void); /* ends what is under way, also where another rank never comes */
void nccl_close(void);

#endif
