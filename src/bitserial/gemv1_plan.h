/* How a problem of the bits kernels is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * K is cut into parts of K of whole k blocks; the CTAs of a cluster take one slice each of the
 * same rows. Rows are cut into super tiles, dealt out evenly to clusters, and the blocks of a slice's super tiles
 * evenly to warps. Shared memory holds the planes of X for the slice, and the warps' sums. */
#ifndef LPG_BITSERIAL_GEMV1_PLAN_H
#define LPG_BITSERIAL_GEMV1_PLAN_H

#include "../kernels/plan/partition.h"
#include "gemv1_fixed.h"

enum {
  LPG_GEMV1_WARPS = 16, /* of a CTA */
  LPG_GEMV1_CUTS = 4,   /* 1, 2, 4, 8 parts of K */
  LPG_GEMV1_MOST_X = 2  /* rows of X: 4 and 8 were slower than gemv (docs/log/2026-11.md) */
};

/* 32-bit words that a row of X takes in shared memory for a k block: its planes, in the lanes' order, and
 * the units and sums of its two chunks. 8 words more than the planes keep rows of blocks in different banks. */
LPG_FN int lpg_gemv1_plane_words(int bits) { return bits * LPG_PLANES * 8; }
LPG_FN int lpg_gemv1_block_words(int bits) { return bits * (LPG_PLANES * 8 + 8); }

/* Of a unit, by rows of X: row tiles, and chunks of columns. */
LPG_FN int lpg_gemv1_row_tiles(int columns) { return columns == 1 ? 1 : 2; }
LPG_FN int lpg_gemv1_chunks(int columns) { return columns == 1 ? 4 : 2; }

/* What a plan has to know of a kernel. */
typedef struct lpg_gemv1_mode {
  int32_t tile_m;            /* rows of X that it is made for */
  int32_t row_tiles, chunks; /* of a unit */
  int32_t x_parts, x_bytes;  /* of X in shared memory: parts, and bytes of one for the columns of a unit */
  int32_t row_bytes;         /* there as well: of a row of weights, */
  int32_t chunk_bytes;       /*   of a chunk of all rows of X, */
  int32_t slice_bytes;       /*   and of a slice of them */
  double unit, planes;       /* nanoseconds: of a unit of all warps' sixteen, and of X for its columns */
} lpg_gemv1_mode;

/* For m rows of fp16 or bf16. Nanoseconds: H200, 2026-11-22, 57344 x 8192, 8192 x 28672, 8192 x 8192, 14336 x 4096 and
 * 4096 x 14336 for one row, the first and the third for two, with each number of parts of K. */
static inline lpg_gemv1_mode lpg_gemv1_mode_of(int bits, int64_t m) {
  lpg_gemv1_mode f = LPG_ZERO;
  f.tile_m = m <= 1 ? 1 : LPG_GEMV1_MOST_X;
  f.row_tiles = lpg_gemv1_row_tiles(f.tile_m);
  f.chunks = lpg_gemv1_chunks(f.tile_m);
  f.x_parts = f.tile_m;
  f.x_bytes = f.chunks / 2 * lpg_gemv1_block_words(bits) * 4;
  f.unit = f.tile_m == 1 ? (bits == 1 ? 38.0 : 65.0) : (bits == 1 ? 50.0 : 71.0);
  f.planes = 19.0 * f.chunks * f.tile_m;
  return f;
}

typedef struct lpg_gemv1_plan {
  int32_t blocks;               /* of columns, and */
  int32_t super_tiles;          /*   of rows: of units */
  int32_t split_k, clusters;    /* parts of K, and groups of rows: parts of K * groups CTAs */
  lpg_partition k_part, n_part; /* blocks of a slice, super tiles of a group */
  int32_t tile_m;               /* rows of X that the kernel is made for */
  /* bytes: of a part of X; where sums of warps and of parts of K lie; of a super tile's sums; where what rows, chunks
   * and parts of K have lies */
  int32_t x_stride, slots, peers, peer_bytes, slot_bytes, rows, row_chunks, row_slices, shared_bytes;
} lpg_gemv1_plan;

/* The planner's parts that the two kernels share; mode_of is the kernel's. In gemv1_plan.c. */
typedef lpg_gemv1_mode lpg_gemv1_mode_fn(int bits, int64_t m);
void lpgemm_i_gemv1_begin(lpg_gemv1_mode_fn *mode_of, const lpg_problem *problem, void *state);
int lpgemm_i_gemv1_cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state,
                       void *plan, double *ns);
int lpgemm_i_gemv1_lay_out(const lpg_device *device, const void *state, void *plan);
void lpgemm_i_gemv1_finish(const lpg_problem *problem, const lpg_device *device, const void *plan, double ns,
                           lpg_launch *launch);
enum { LPG_GEMV1_STATE_BYTES = sizeof(lpg_gemv1_mode) };

/* 1 for weights whose scales are fp16 or none and whose zero is fixed: the kernels of fewer instructions. */
static inline int lpg_gemv1_is_common(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  return (d->scale_type == 0 || d->scale_type == LPGEMM_F16) &&
         (d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT);
}

#endif
