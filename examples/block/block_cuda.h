/* What the CUDA files of the block share: the stream that everything runs in, and how failures end the program. */
#ifndef BLOCK_CUDA_H
#define BLOCK_CUDA_H

#include <cuda_runtime_api.h>

#include "block.h"

#ifdef __cplusplus
extern "C" {
#endif

/* graph_cuda.c */
extern cudaStream_t cuda_stream;   /* set by run_cuda() */
extern void (*cuda_waiting)(void); /* called again and again while the host waits, unless it is NULL */
void cuda_wait(void);              /* until the stream has done all that it was given */
cudaGraphExec_t capture(void (*work)(void *context), void *context);      /* does the work once before */
double time_calls(void (*work)(void *context), void *context, int times); /* microseconds of one */
double replay(cudaGraphExec_t graph, int times);                          /* the same of a graph */

#define CUDA(call)                                                                          \
  do {                                                                                      \
    cudaError_t cuda_error_ = (call);                                                       \
    if (cuda_error_ != cudaSuccess) fail("%s: %s", #call, cudaGetErrorString(cuda_error_)); \
  } while (0)

/* attention_cuda.cu: for one token, and for many of them on tensor cores. */
void attend_one(const block *b);
void attend_many(const block *b, int64_t m);

/* machine_cuda.cu: hands out the token in x and takes the next one, as sampling and embedding would: copies x to row
 * position - first of out, position + 1 to b->position, and the next row of in, of `steps`, to x. */
void next_token(const block *b, const void *in, void *out, int32_t first, int32_t steps);

/* reference_cublas.c: 0 if cuBLAS is not on this machine. The product is by layer->dense, fp16. */
int cublas_open(void);
void cublas_multiply(const block *b, const linear *layer, int64_t m, const void *x, void *y, int add);

#ifdef __cplusplus
}
#endif

#endif
