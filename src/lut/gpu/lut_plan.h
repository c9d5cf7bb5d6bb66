/* How a problem of the lookup kernels is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * K is cut into parts of K of whole blocks; the CTAs of a cluster take one slice each of the same rows. Rows
 * are cut into super tiles of 64 or 32, dealt out evenly to clusters, and the blocks of a slice's super tiles evenly to
 * warps. Shared memory holds the tables of X for the slice, and the warps' sums. */
#ifndef LPG_LUT_GPU_PLAN_H
#define LPG_LUT_GPU_PLAN_H

#include "../../kernels/plan/partition.h"
#include "lut_table.h"

enum {
  LPG_LUT_GPU_CUTS = 4, /* 1, 2, 4, 8 parts of K */
  /* Bytes of a chunk: tables, of which each lane has its own in its own bank of shared memory; and what goes with them.
   */
  LPG_LUT_GPU_TABLES = LPG_TABLES * LPG_TABLE_ENTRIES * LPG_LANES * 4,
  LPG_LUT_GPU_SCALES = 16
};

/* Warps of a CTA: as many as have registers for the words of two blocks. */
LPG_FN int lpg_lut_gpu_warps(int bits) { return bits == 3 ? 20 : 24; }

/* A block is whole vectors of 512 bytes of each row tile, and whole chunks. */
LPG_FN int lpg_lut_gpu_row_tiles(int bits) { return bits <= 2 ? 4 : 2; } /* of a super tile */
LPG_FN int lpg_lut_gpu_vectors(int bits) { return bits <= 2 ? 1 : bits == 3 ? 3 : 2; }
LPG_FN int lpg_lut_gpu_chunks(int bits) { return bits % 2 ? 2 : 1; }

typedef struct lpg_lut_gpu_plan {
  int32_t blocks;               /* of columns, and */
  int32_t super_tiles;          /*   of rows */
  int32_t split_k, clusters;    /* parts of K, and groups of rows: parts of K * groups CTAs */
  lpg_partition k_part, n_part; /* blocks of a slice, super tiles of a group */
  /* bytes: where what goes with the tables, and sums of warps and of parts of K lie; of a super tile's sums */
  int32_t scale_data, slots, peers, peer_bytes, slot_bytes, shared_bytes;
} lpg_lut_gpu_plan;

/* Lays the problem out in so many parts of K; 0 if it has no so many, the device none that run at once, or too little
 * shared memory. */
static inline int lpg_lut_gpu_lay_out(const lpg_packed *weights, const lpg_device *device, int split_k_log2,
                                      lpg_lut_gpu_plan *p) {
  const int32_t most = split_k_log2 > 0 ? device->clusters[1 << split_k_log2] : device->sms;
  const int block_chunks = lpg_lut_gpu_chunks(weights->bits), row_tiles = lpg_lut_gpu_row_tiles(weights->bits);
  p->blocks = (int32_t)lpg_ceil_div(weights->k_padded, block_chunks * LPG_CHUNK_K);
  p->super_tiles = (int32_t)lpg_ceil_div(weights->row_tiles, row_tiles);
  p->split_k = 1 << split_k_log2;
  p->clusters = most < p->super_tiles ? most : p->super_tiles;
  if (p->clusters <= 0 || (split_k_log2 > 0 && p->split_k > p->blocks)) return 0;
  p->k_part = lpg_partition_of(p->blocks, p->split_k);
  p->n_part = lpg_partition_of(p->super_tiles, p->clusters);
  const int64_t tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const int64_t chunks = blocks * block_chunks;
  p->slot_bytes = row_tiles * LPG_TILE_ROWS * 4;
  const int64_t scale_data = chunks * LPG_LUT_GPU_TABLES, slots = scale_data + chunks * LPG_LUT_GPU_SCALES;
  const int64_t peers = slots + (tiles + lpg_lut_gpu_warps(weights->bits) - 1) * p->slot_bytes;
  const int64_t peer_bytes = p->split_k > 1 ? (tiles + p->split_k - 1) / p->split_k * p->slot_bytes : 0;
  if (peers + p->split_k * peer_bytes > device->shared_memory) return 0;
  p->scale_data = (int32_t)scale_data;
  p->slots = (int32_t)slots;
  p->peers = (int32_t)peers;
  p->peer_bytes = (int32_t)peer_bytes;
  p->shared_bytes = p->peers + p->split_k * p->peer_bytes;
  return 1;
}

/* Nanoseconds that the plan takes: for its tables, for every super tile's sums, for blocks of warps. Measured on an
 * H200, 2026-11-22 and -23, from 4096 x 4096 to 57344 x 8192. */
static inline double lpg_lut_gpu_cost(const lpg_lut_gpu_plan *p, int bits) {
  const int tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const int row_tiles = lpg_lut_gpu_row_tiles(bits), vectors = row_tiles * lpg_lut_gpu_vectors(bits);
  return 4800.0 + tiles * (25.0 * row_tiles + 20.25 * vectors * blocks);
}

/* The plan that takes the least time; 0 if there is none. */
static inline int lpg_lut_gpu_make_plan(const lpg_packed *weights, const lpg_device *device, lpg_lut_gpu_plan *plan,
                                        double *cost) {
  double least = -1;
  for (int i = 0; i < LPG_LUT_GPU_CUTS; i++) {
    lpg_lut_gpu_plan p = LPG_ZERO;
    if (!lpg_lut_gpu_lay_out(weights, device, i, &p)) continue;
    const double ns = lpg_lut_gpu_cost(&p, weights->bits);
    if (least >= 0 && ns >= least) continue;
    least = ns;
    *plan = p;
  }
  *cost = least;
  return least >= 0;
}

#endif
