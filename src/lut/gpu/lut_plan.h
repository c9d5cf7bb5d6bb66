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

/* 1 for weights whose scales are fp16 or none and whose zero is fixed: the fast form of the kernels. */
static inline int lpg_lut_gpu_is_common(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  return (d->scale_type == 0 || d->scale_type == LPGEMM_F16) &&
         (d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT);
}

#endif
