/* How a problem of the bits kernels is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * K is cut into slices of whole blocks of 256 columns; the blocks of threads of a cluster take one slice each of the
 * same rows. Rows are cut into super tiles, dealt out evenly to clusters, and the blocks of a slice's super tiles
 * evenly to warps. Shared memory holds the planes of X for the slice, and the warps' sums. */
#ifndef LPG_BITSERIAL_BITS_PLAN_H
#define LPG_BITSERIAL_BITS_PLAN_H

#include "../kernels/plan/partition.h"
#include "gemv1_fixed.h"

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

/* What a plan has to know of a kernel. */
typedef struct lpg_bits_form {
  int32_t columns;           /* rows of X that it is made for */
  int32_t row_tiles, chunks; /* of a unit */
  int32_t x_parts, x_bytes;  /* of X in shared memory: parts, and bytes of one for the columns of a unit */
  int32_t row_bytes;         /* there as well: of a row of weights, */
  int32_t chunk_bytes;       /*   of a chunk of all rows of X, */
  int32_t slice_bytes;       /*   and of a slice of them */
  double unit, planes;       /* nanoseconds: of a unit of all warps' sixteen, and of X for its columns */
} lpg_bits_form;

/* For m rows of fp16 or bf16. Nanoseconds: H200, 2026-11-22, 57344 x 8192, 8192 x 28672, 8192 x 8192, 14336 x 4096 and
 * 4096 x 14336 for one row, the first and the third for two, with each number of slices. */
static inline lpg_bits_form lpg_bits_form_of(int bits, int64_t m) {
  lpg_bits_form f = LPG_ZERO;
  f.columns = m <= 1 ? 1 : LPG_BITS_MOST_X;
  f.row_tiles = lpg_bits_row_tiles(f.columns);
  f.chunks = lpg_bits_chunks(f.columns);
  f.x_parts = f.columns;
  f.x_bytes = f.chunks / 2 * lpg_bits_block_words(bits) * 4;
  f.unit = f.columns == 1 ? (bits == 1 ? 38.0 : 65.0) : (bits == 1 ? 50.0 : 71.0);
  f.planes = 19.0 * f.chunks * f.columns;
  return f;
}

typedef struct lpg_bits_plan {
  int32_t blocks;          /* of columns, and */
  int32_t super_tiles;     /*   of rows: of units */
  int32_t slices, groups;  /* slices of K, and groups of rows: slices * groups blocks of threads */
  lpg_shares slice, group; /* blocks of a slice, super tiles of a group */
  int32_t columns;         /* rows of X that the kernel is made for */
  /* bytes: of a part of X; where sums of warps and of slices lie; of a super tile's sums; where what rows, chunks and
   * slices have lies */
  int32_t x_stride, slots, inbox, inbox_slice, slot_bytes, rows, row_chunks, row_slices, shared_bytes;
} lpg_bits_plan;

/* Lays the problem out in so many slices; 0 if it has no so many, the device none that run at once, or too little
 * shared memory. */
static inline int lpg_bits_lay_out(const lpg_plan *weights, const lpg_bits_form *form, const lpg_device *device,
                                   int slices_log2, lpg_bits_plan *p) {
  const int32_t most = slices_log2 > 0 ? device->clusters[1 << slices_log2] : device->units;
  p->columns = form->columns;
  p->blocks = (int32_t)lpg_ceil_div(weights->k_padded, form->chunks * LPG_CHUNK_K);
  p->super_tiles = (int32_t)lpg_ceil_div(weights->row_tiles, form->row_tiles);
  p->slices = 1 << slices_log2;
  p->groups = most < p->super_tiles ? most : p->super_tiles;
  if (p->groups <= 0 || (slices_log2 > 0 && p->slices > p->blocks)) return 0;
  p->slice = lpg_shares_of(p->blocks, p->slices);
  p->group = lpg_shares_of(p->super_tiles, p->groups);
  const int64_t tiles = p->group.each + (p->group.more > 0), blocks = p->slice.each + (p->slice.more > 0);
  const int64_t x_stride = blocks * form->x_bytes, slots = form->x_parts * x_stride;
  p->slot_bytes = form->row_tiles * LPG_TILE_ROWS * p->columns * 4;
  const int64_t inbox_slice = p->slices > 1 ? (tiles + p->slices - 1) / p->slices * p->slot_bytes : 0;
  const int64_t inbox = slots + (tiles + LPG_BITS_WARPS - 1) * p->slot_bytes, rows = inbox + p->slices * inbox_slice;
  const int64_t row_chunks = rows + tiles * form->row_tiles * LPG_TILE_ROWS * form->row_bytes;
  const int64_t row_slices = row_chunks + blocks * form->chunks * form->chunk_bytes;
  const int64_t bytes = row_slices + p->slices * form->slice_bytes;
  if (bytes > device->shared_memory) return 0;
  p->x_stride = (int32_t)x_stride;
  p->slots = (int32_t)slots;
  p->inbox = (int32_t)inbox;
  p->inbox_slice = (int32_t)inbox_slice;
  p->rows = (int32_t)rows;
  p->row_chunks = (int32_t)row_chunks;
  p->row_slices = (int32_t)row_slices;
  p->shared_bytes = (int32_t)bytes;
  return 1;
}

/* Nanoseconds that the plan takes: units, before them planes of X, in the end sums of slices. */
static inline double lpg_bits_cost(const lpg_bits_plan *p, const lpg_bits_form *form) {
  const int tiles = p->group.each + (p->group.more > 0), blocks = p->slice.each + (p->slice.more > 0);
  const double units = (double)lpg_round_up((int64_t)tiles * blocks, LPG_BITS_WARPS);
  const double together = p->slices > 4 ? 1200.0 : p->slices > 2 ? 800.0 : p->slices > 1 ? 400.0 : 0.0;
  return 4000.0 + units * form->unit + blocks * form->planes + together;
}

/* The plan that takes the least time; 0 if there is none. */
static inline int lpg_bits_make_plan(const lpg_plan *weights, lpg_bits_form form, const lpg_device *device,
                                     lpg_bits_plan *plan, double *cost) {
  double least = -1;
  for (int i = 0; i < LPG_BITS_SLICINGS; i++) {
    lpg_bits_plan p = LPG_ZERO;
    if (!lpg_bits_lay_out(weights, &form, device, i, &p)) continue;
    const double ns = lpg_bits_cost(&p, &form);
    if (least >= 0 && ns >= least) continue;
    least = ns;
    *plan = p;
  }
  *cost = least;
  return least >= 0;
}

#endif
