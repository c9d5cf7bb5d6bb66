/* Packing on the GPU, in the pieces of which lpgemm_pack_weights() and the import of checkpoints are made: rows, then
 * what is derived from them. For CUDA C++. */
#ifndef LPG_PACK_DEVICE_H
#define LPG_PACK_DEVICE_H

#include "../cuda/cuda.h"
#include "at.h"
#include "pack.h"

enum { LPG_HASH_SUMS = 256 }; /* partial sums of the payload's hash, so that blocks do not queue for one */

/* What the kernels report back, in device memory; it starts as zeros. */
typedef struct lpg_pack_report {
  unsigned long long hash[LPG_HASH_SUMS];
  unsigned scale_span;
  int any_bad; /* a code or a number is too large */
  unsigned long long first_bad;
} lpg_pack_report;

/* Where numbers of a section go. */
typedef struct lpg_numbers_to {
  uint8_t *section; /* NULL: there are none, or others write them */
  int bytes;        /* of a number; 0: half of one */
  int slot_bytes;   /* of the 16 numbers of a row tile */
  uint32_t group_k; /* columns that share a number */
  uint32_t largest;
  int64_t count, padded, first_group;
} lpg_numbers_to;

/* A grid of GGUF's IQ2 types as a kernel's second parameter: it comes with the launch, that is sooner there than a
 * copy. */
typedef struct lpg_iq2_grid {
  uint16_t entry[512];
} lpg_iq2_grid;

/* Rows of a source: row i is row row_order[i] of it, or first_source_row + i. */
typedef struct lpg_rows_args {
  lpg_at at;
  const int32_t *row_order, *column_order; /* or NULL; in device memory */
  int64_t first_source_row, first_column;
  int each; /* columns are in an order, or first_column is no multiple of 16 */
  int64_t rows, k, k_tiles;
  int64_t first_row;  /* in the blob; a multiple of 16 */
  uint32_t flip;      /* XORed with every code */
  uint8_t *codes;     /* where those of the first row go */
  int64_t first_byte; /* and where that is in the payload */
  int64_t chunks;     /* of columns, that a block takes */
  int row_tiles;      /* the same */
  int shares;         /* rows share numbers */
  int64_t tiles_a_scale;
  lpg_numbers_to numbers[LPG_SECTIONS];
  lpg_pack_report *found;    /* or NULL: neither hash nor checks are wanted */
  const lpg_iq2_grid *grid;  /* NULL, or on the host the kernel's second parameter */
  int threads, shared_bytes; /* of a block: 256 and 0, and one row tile, but for kernels of their own */
} lpg_rows_args;

LPG_EXTERN_C lpgemm_status_t lpgemm_i_cuda_start_report(lpg_pack_report *report, cudaStream_t stream);

/* What follows from the blob for `rows` rows from first_row on: args without a source. */
LPG_EXTERN_C void lpgemm_i_cuda_rows_args(const lpg_packed *packed, int64_t first_row, int64_t rows, uint8_t *blob,
                                          lpg_pack_report *found, lpg_rows_args *args);

/* Launches a kernel of an arrangement on them: blocks of so many chunks by so many row tiles. */
LPG_EXTERN_C lpgemm_status_t lpgemm_i_cuda_launch_rows(const void *kernel, const lpg_rows_args *args,
                                                       cudaStream_t stream);

/* Row scales: of an array in device memory, by row_order or from its start on; or one for all rows if it is NULL. */
LPG_EXTERN_C lpgemm_status_t lpgemm_i_cuda_put_row_scales(const lpg_packed *packed, int64_t first_row, int64_t rows,
                                                          const float *scales, const int32_t *row_order, float one,
                                                          uint8_t *blob, cudaStream_t stream);

/* Row exponents of rows whose numbers are in place. */
LPG_EXTERN_C lpgemm_status_t lpgemm_i_cuda_put_exponents(const lpg_packed *packed, int64_t first_row, int64_t rows,
                                                         uint8_t *blob, lpg_pack_report *report, cudaStream_t stream);

/* The same; waits for all of it and reads the report. If the rows are all rows,
 * the rest of the payload is hashed too, and content->is_whole says so. *bad: something was too large, and the rows are
 * not packed. */
LPG_EXTERN_C lpgemm_status_t lpgemm_i_cuda_end_rows(const lpg_packed *packed, int64_t first_row, int64_t rows,
                                                    uint8_t *blob, lpg_pack_report *report, lpg_content *content,
                                                    int *bad, cudaStream_t stream);

#ifdef __CUDACC__
namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* key: that of the first of its two words. */
__device__ inline unsigned long long hash_vector(uint4 v, uint64_t key) {
  return lpg_hash_by_key(v.x | (uint64_t)v.y << 32, key) +
         lpg_hash_by_key(v.z | (uint64_t)v.w << 32, key + LPG_HASH_STEP);
}

/* Adds what the threads of a block found to one of the partial sums of the payload's hash. */
__device__ inline void add_hash(unsigned long long *sums, unsigned long long sum) {
  for (int offset = 16; offset; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  __shared__ unsigned long long of_warp[32];
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < blockDim.x / 32; i++) sum += of_warp[i];
  atomicAdd(&sums[(blockIdx.x + blockIdx.y * gridDim.x) % LPG_HASH_SUMS], sum); /* integers: in any order */
}

/* The numbers of rows g and g + 8 of a tile, which lie side by side (packed.h), for `here` groups that are `Step`
 * apart. */
template <int Most, int Step>
__device__ inline void put_numbers(const lpg_numbers_to &to, int64_t row_tile, unsigned g, int64_t group, int here,
                                   const uint32_t (&number)[Most][2]) {
  uint8_t *block = to.section + (row_tile * to.padded + group) * to.slot_bytes;
  const int next = Step * to.slot_bytes;
  switch (to.bytes) {
    case 0:
#pragma unroll
      for (int i = 0; i < Most; i++) {
        if (i < here) block[i * next + g] = (uint8_t)(number[i][0] | number[i][1] << 4);
      }
      break;
    case 1:
#pragma unroll
      for (int i = 0; i < Most; i++) {
        if (i < here) ((uint16_t *)(block + i * next))[g] = (uint16_t)(number[i][0] | number[i][1] << 8);
      }
      break;
    case 2:
#pragma unroll
      for (int i = 0; i < Most; i++) {
        if (i < here) ((uint32_t *)(block + i * next))[g] = number[i][0] | number[i][1] << 16;
      }
      break;
    default:
#pragma unroll
      for (int i = 0; i < Most; i++) {
        if (i < here) ((uint2 *)(block + i * next))[g] = make_uint2(number[i][0], number[i][1]);
      }
      break;
  }
}

static constexpr unsigned many_blocks = 132 * 16;

static inline unsigned blocks_for(int64_t items, int64_t items_a_block) {
  const int64_t blocks = lpg_ceil_div(items, items_a_block);
  return (unsigned)(blocks < 1 ? 1 : blocks > many_blocks ? many_blocks : blocks);
}

}  // namespace
}  // namespace lpg
#endif

#endif
