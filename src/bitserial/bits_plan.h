/* How a problem of the bits kernels is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * K is cut into slices of whole blocks of 256 columns; the blocks of threads of a cluster take one slice each of the
 * same rows. Rows are cut into super tiles, dealt out evenly to clusters, and the blocks of a slice's super tiles
 * evenly to warps. Shared memory holds the planes of X for the slice, and the warps' sums. */
#ifndef LPG_BITSERIAL_BITS_PLAN_H
#define LPG_BITSERIAL_BITS_PLAN_H

#include "../kernels/blocks.h"
#include "bits_fixed.h"

enum {
  LPG_BITS_WARPS = 16,   /* of a block of threads */
  LPG_BITS_SLICINGS = 4, /* 1, 2, 4, 8 slices of K */
  LPG_BITS_MOST_X = 2    /* rows of X: 4 and 8 were slower than decoding (docs/performance.md) */
};

/* 32-bit words that a row of X takes in shared memory for a block of 256 columns: its planes, in the lanes' order, and
 * the units and sums of its two chunks. 8 words more than the planes keep rows of blocks in different banks. */
LPG_FN int lpg_bits_plane_words(int bits) { return bits * LPG_PLANES * 8; }
LPG_FN int lpg_bits_block_words(int bits) { return bits * (LPG_PLANES * 8 + 8); }

/* Of a unit, by rows of X: row tiles, and chunks of columns. */
LPG_FN int lpg_bits_row_tiles(int columns) { return columns == 1 ? 1 : 2; }
LPG_FN int lpg_bits_chunks(int columns) { return columns == 1 ? 4 : 2; }

/* Rows of X that a kernel is made for. */
static inline int lpg_bits_columns(int64_t m) { return m <= 1 ? 1 : LPG_BITS_MOST_X; }

typedef struct lpg_bits_plan {
  int32_t blocks;          /* of columns, and */
  int32_t super_tiles;     /*   of rows: of units */
  int32_t slices, groups;  /* slices of K, and groups of rows: slices * groups blocks of threads */
  lpg_shares slice, group; /* blocks of a slice, super tiles of a group */
  int32_t columns;         /* rows of X that the kernel is made for */
  /* bytes: of the planes of a row of X; where sums of warps and of slices lie; of a super tile's sums */
  int32_t x_stride, slots, inbox, inbox_slice, slot_bytes, shared_bytes;
} lpg_bits_plan;

/* Lays the problem out in so many slices; 0 if it has no so many, the device none that run at once, or too little
 * shared memory. */
static inline int lpg_bits_lay_out(const lpg_plan *weights, int64_t m, const lpg_device *device, int slices_log2,
                                   lpg_bits_plan *p) {
  const int32_t most = slices_log2 > 0 ? device->clusters[1 << slices_log2] : device->units;
  p->columns = lpg_bits_columns(m);
  const int row_tiles = lpg_bits_row_tiles(p->columns), chunks = lpg_bits_chunks(p->columns);
  p->blocks = (int32_t)lpg_ceil_div(weights->k_padded, chunks * LPG_CHUNK_K);
  p->super_tiles = (int32_t)lpg_ceil_div(weights->row_tiles, row_tiles);
  p->slices = 1 << slices_log2;
  p->groups = most < p->super_tiles ? most : p->super_tiles;
  if (p->groups <= 0 || (slices_log2 > 0 && p->slices > p->blocks)) return 0;
  p->slice = lpg_shares_of(p->blocks, p->slices);
  p->group = lpg_shares_of(p->super_tiles, p->groups);
  const int64_t tiles = p->group.each + (p->group.more > 0), blocks = p->slice.each + (p->slice.more > 0);
  const int64_t x_stride = blocks * (chunks / 2) * lpg_bits_block_words(weights->bits) * 4;
  p->slot_bytes = row_tiles * LPG_TILE_ROWS * p->columns * 4;
  const int64_t inbox = p->slices > 1 ? (tiles + p->slices - 1) / p->slices * p->slot_bytes : 0;
  const int64_t slots = (tiles + LPG_BITS_WARPS - 1) * p->slot_bytes;
  const int64_t bytes = p->columns * x_stride + slots + p->slices * inbox;
  if (bytes > device->shared_memory) return 0;
  p->x_stride = (int32_t)x_stride;
  p->slots = (int32_t)(p->columns * x_stride);
  p->inbox = p->slots + (int32_t)slots;
  p->inbox_slice = (int32_t)inbox;
  p->shared_bytes = (int32_t)bytes;
  return 1;
}

/* Nanoseconds that the plan takes: units, before them planes of X, in the end sums of slices. Measured on an H200,
 * 2026-11-22, at 57344 x 8192, 8192 x 28672, 8192 x 8192, 14336 x 4096 and 4096 x 14336 for one row, at the first and
 * the third for two, with each number of slices. */
static inline double lpg_bits_cost(const lpg_bits_plan *p, int bits) {
  const int tiles = p->group.each + (p->group.more > 0), blocks = p->slice.each + (p->slice.more > 0);
  const double units = (double)lpg_round_up((int64_t)tiles * blocks, LPG_BITS_WARPS);
  const double unit = p->columns == 1 ? (bits == 1 ? 38.0 : 65.0) : (bits == 1 ? 50.0 : 71.0);
  const double planes = 19.0 * blocks * lpg_bits_chunks(p->columns) * p->columns;
  const double together = p->slices > 4 ? 1200.0 : p->slices > 2 ? 800.0 : p->slices > 1 ? 400.0 : 0.0;
  return 4000.0 + units * unit + planes + together;
}

/* The plan for m rows that takes the least time; 0 if there is none. */
static inline int lpg_bits_make_plan(const lpg_plan *weights, int64_t m, const lpg_device *device, lpg_bits_plan *plan,
                                     double *cost) {
  double least = -1;
  for (int i = 0; i < LPG_BITS_SLICINGS; i++) {
    lpg_bits_plan p = LPG_ZERO;
    if (!lpg_bits_lay_out(weights, m, device, i, &p)) continue;
    const double ns = lpg_bits_cost(&p, weights->bits);
    if (least >= 0 && ns >= least) continue;
    least = ns;
    *plan = p;
  }
  *cost = least;
  return least >= 0;
}

#endif
