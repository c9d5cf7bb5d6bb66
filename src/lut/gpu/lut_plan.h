/* How a problem of the lookup kernels is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * K is cut into slices of whole blocks; the blocks of threads of a cluster take one slice each of the same rows. Rows
 * are cut into super tiles of 64 or 32, dealt out evenly to clusters, and the blocks of a slice's super tiles evenly to
 * warps. Shared memory holds the tables of X for the slice, and the warps' sums. */
#ifndef LPG_KERNELS_LOOKUP_PLAN_H
#define LPG_KERNELS_LOOKUP_PLAN_H

#include "../../kernels/plan/partition.h"
#include "lut_table.h"

enum {
  LPG_LOOKUP_SLICINGS = 4, /* 1, 2, 4, 8 slices of K */
  /* Bytes of a chunk: tables, of which each lane has its own in its own bank of shared memory; and what goes with them.
   */
  LPG_LOOKUP_TABLES = LPG_TABLES * LPG_TABLE_ENTRIES * LPG_LANES * 4,
  LPG_LOOKUP_NUMBERS = 16
};

/* Warps of a block of threads: as many as have registers for the words of two blocks. */
LPG_FN int lpg_lookup_warps(int bits) { return bits == 3 ? 20 : 24; }

/* A block is whole vectors of 512 bytes of each row tile, and whole chunks. */
LPG_FN int lpg_lookup_row_tiles(int bits) { return bits <= 2 ? 4 : 2; } /* of a super tile */
LPG_FN int lpg_lookup_vectors(int bits) { return bits <= 2 ? 1 : bits == 3 ? 3 : 2; }
LPG_FN int lpg_lookup_chunks(int bits) { return bits % 2 ? 2 : 1; }

typedef struct lpg_lookup_plan {
  int32_t blocks;          /* of columns, and */
  int32_t super_tiles;     /*   of rows */
  int32_t slices, groups;  /* slices of K, and groups of rows: slices * groups blocks of threads */
  lpg_shares slice, group; /* blocks of a slice, super tiles of a group */
  /* bytes: where what goes with the tables, and sums of warps and of slices lie; of a super tile's sums */
  int32_t numbers, slots, inbox, inbox_slice, slot_bytes, shared_bytes;
} lpg_lookup_plan;

/* Lays the problem out in so many slices; 0 if it has no so many, the device none that run at once, or too little
 * shared memory. */
static inline int lpg_lookup_lay_out(const lpg_plan *weights, const lpg_device *device, int slices_log2,
                                     lpg_lookup_plan *p) {
  const int32_t most = slices_log2 > 0 ? device->clusters[1 << slices_log2] : device->units;
  const int block_chunks = lpg_lookup_chunks(weights->bits), row_tiles = lpg_lookup_row_tiles(weights->bits);
  p->blocks = (int32_t)lpg_ceil_div(weights->k_padded, block_chunks * LPG_CHUNK_K);
  p->super_tiles = (int32_t)lpg_ceil_div(weights->row_tiles, row_tiles);
  p->slices = 1 << slices_log2;
  p->groups = most < p->super_tiles ? most : p->super_tiles;
  if (p->groups <= 0 || (slices_log2 > 0 && p->slices > p->blocks)) return 0;
  p->slice = lpg_shares_of(p->blocks, p->slices);
  p->group = lpg_shares_of(p->super_tiles, p->groups);
  const int64_t tiles = p->group.each + (p->group.more > 0), blocks = p->slice.each + (p->slice.more > 0);
  const int64_t chunks = blocks * block_chunks;
  p->slot_bytes = row_tiles * LPG_TILE_ROWS * 4;
  const int64_t numbers = chunks * LPG_LOOKUP_TABLES, slots = numbers + chunks * LPG_LOOKUP_NUMBERS;
  const int64_t inbox = slots + (tiles + lpg_lookup_warps(weights->bits) - 1) * p->slot_bytes;
  const int64_t inbox_slice = p->slices > 1 ? (tiles + p->slices - 1) / p->slices * p->slot_bytes : 0;
  if (inbox + p->slices * inbox_slice > device->shared_memory) return 0;
  p->numbers = (int32_t)numbers;
  p->slots = (int32_t)slots;
  p->inbox = (int32_t)inbox;
  p->inbox_slice = (int32_t)inbox_slice;
  p->shared_bytes = p->inbox + p->slices * p->inbox_slice;
  return 1;
}

/* Nanoseconds that the plan takes: for its tables, for every super tile's sums, for blocks of warps. Measured on an
 * H200, 2026-11-22 and -23, from 4096 x 4096 to 57344 x 8192. */
static inline double lpg_lookup_cost(const lpg_lookup_plan *p, int bits) {
  const int tiles = p->group.each + (p->group.more > 0), blocks = p->slice.each + (p->slice.more > 0);
  const int row_tiles = lpg_lookup_row_tiles(bits), vectors = row_tiles * lpg_lookup_vectors(bits);
  return 4800.0 + tiles * (25.0 * row_tiles + 20.25 * vectors * blocks);
}

/* The plan that takes the least time; 0 if there is none. */
static inline int lpg_lookup_make_plan(const lpg_plan *weights, const lpg_device *device, lpg_lookup_plan *plan,
                                       double *cost) {
  double least = -1;
  for (int i = 0; i < LPG_LOOKUP_SLICINGS; i++) {
    lpg_lookup_plan p = LPG_ZERO;
    if (!lpg_lookup_lay_out(weights, device, i, &p)) continue;
    const double ns = lpg_lookup_cost(&p, weights->bits);
    if (least >= 0 && ns >= least) continue;
    least = ns;
    *plan = p;
  }
  *cost = least;
  return least >= 0;
}

#endif
