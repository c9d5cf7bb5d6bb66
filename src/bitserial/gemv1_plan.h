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
  LPG_GEMV1_MOST_X = 2  /* rows of X: 4 and 8 were slower than dequantising (docs/performance.md) */
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

/* Lays the problem out in so many parts of K; 0 if it has no so many, the device none that run at once, or too little
 * shared memory. */
static inline int lpg_gemv1_lay_out(const lpg_packed *weights, const lpg_gemv1_mode *form, const lpg_device *device,
                                    int split_k_log2, lpg_gemv1_plan *p) {
  const int32_t most = split_k_log2 > 0 ? device->clusters[1 << split_k_log2] : device->sms;
  p->tile_m = form->tile_m;
  p->blocks = (int32_t)lpg_ceil_div(weights->k_padded, form->chunks * LPG_CHUNK_K);
  p->super_tiles = (int32_t)lpg_ceil_div(weights->row_tiles, form->row_tiles);
  p->split_k = 1 << split_k_log2;
  p->clusters = most < p->super_tiles ? most : p->super_tiles;
  if (p->clusters <= 0 || (split_k_log2 > 0 && p->split_k > p->blocks)) return 0;
  p->k_part = lpg_partition_of(p->blocks, p->split_k);
  p->n_part = lpg_partition_of(p->super_tiles, p->clusters);
  const int64_t tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const int64_t x_stride = blocks * form->x_bytes, slots = form->x_parts * x_stride;
  p->slot_bytes = form->row_tiles * LPG_TILE_ROWS * p->tile_m * 4;
  const int64_t peer_bytes = p->split_k > 1 ? (tiles + p->split_k - 1) / p->split_k * p->slot_bytes : 0;
  const int64_t peers = slots + (tiles + LPG_GEMV1_WARPS - 1) * p->slot_bytes, rows = peers + p->split_k * peer_bytes;
  const int64_t row_chunks = rows + tiles * form->row_tiles * LPG_TILE_ROWS * form->row_bytes;
  const int64_t row_slices = row_chunks + blocks * form->chunks * form->chunk_bytes;
  const int64_t bytes = row_slices + p->split_k * form->slice_bytes;
  if (bytes > device->shared_memory) return 0;
  p->x_stride = (int32_t)x_stride;
  p->slots = (int32_t)slots;
  p->peers = (int32_t)peers;
  p->peer_bytes = (int32_t)peer_bytes;
  p->rows = (int32_t)rows;
  p->row_chunks = (int32_t)row_chunks;
  p->row_slices = (int32_t)row_slices;
  p->shared_bytes = (int32_t)bytes;
  return 1;
}

/* Nanoseconds that the plan takes: units, before them planes of X, in the end sums of parts of K. */
static inline double lpg_gemv1_cost(const lpg_gemv1_plan *p, const lpg_gemv1_mode *form) {
  const int tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const double units = (double)lpg_round_up((int64_t)tiles * blocks, LPG_GEMV1_WARPS);
  const double together = p->split_k > 4 ? 1200.0 : p->split_k > 2 ? 800.0 : p->split_k > 1 ? 400.0 : 0.0;
  return 4000.0 + units * form->unit + blocks * form->planes + together;
}

/* The plan that takes the least time; 0 if there is none. */
static inline int lpg_gemv1_make_plan(const lpg_packed *weights, lpg_gemv1_mode form, const lpg_device *device,
                                      lpg_gemv1_plan *plan, double *cost) {
  double least = -1;
  for (int i = 0; i < LPG_GEMV1_CUTS; i++) {
    lpg_gemv1_plan p = LPG_ZERO;
    if (!lpg_gemv1_lay_out(weights, &form, device, i, &p)) continue;
    const double ns = lpg_gemv1_cost(&p, &form);
    if (least >= 0 && ns >= least) continue;
    least = ns;
    *plan = p;
  }
  *cost = least;
  return least >= 0;
}

#endif
