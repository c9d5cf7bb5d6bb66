/* What the plans of kernels are made of: k blocks, and things dealt out in parts. Plain arithmetic, for C and
 * CUDA. */
#ifndef LPG_KERNELS_BLOCKS_H
#define LPG_KERNELS_BLOCKS_H

#include "../../internal.h"

enum {
  LPG_BLOCK_K = 256, /* columns that a warp takes at once: whole tiles of every width */
  LPG_PASS_ROWS = 16 /* rows of X whose sums a tile's warps load together at once */
};

/* The 16-bit type that a kernel multiplies X in: its own, or fp16, which holds all numbers of 8 bits. */
static inline lpgemm_dtype_t lpg_half_type(lpgemm_dtype_t x_type) {
  return x_type == LPGEMM_BF16 ? LPGEMM_BF16 : LPGEMM_F16;
}

/* `parts` parts of a number of things: all have `each`, the first `more` one more. */
typedef struct lpg_partition {
  int32_t each, more;
} lpg_partition;

LPG_FN lpg_partition lpg_partition_of(int32_t count, int32_t parts) {
  lpg_partition s = LPG_ZERO;
  s.each = count / parts;
  s.more = count % parts;
  return s;
}

/* Work tiles that clusters, `groups` of them, take as they are, of so many by m rows of X in all; those left come in
 * halves of their rows of X, if so each cluster has one at the most, and each half has rows of X. */
static inline int32_t lpg_whole_tiles(int32_t tiles, int32_t groups, int64_t m, int tile_m) {
  const int32_t left = tiles % groups;
  const int64_t last = (m - 1) % tile_m + 1; /* rows of the last */
  return tiles > groups && 2 * left <= groups && 2 * last > tile_m ? tiles - left : tiles;
}

static inline int lpg_round_up_to(int64_t x, int unit) { return (int)((x + unit - 1) / unit * unit); }

/* Groups of an axis that a k block has, at least one. */
static inline int lpg_block_groups(const lpg_axis *axis) {
  return axis->count > 1 && axis->k < LPG_BLOCK_K ? (int)(LPG_BLOCK_K / axis->k) : 1;
}

/* Bytes of a section for a chunk of blocks of a row tile, in shared memory. */
static inline int lpg_chunk_bytes(const lpg_packed *weights, lpg_section_id id, int chunk) {
  if (weights->section[id].bytes == 0) return 0;
  const int slot = lpg_slot_bytes(lpg_section_type(&weights->desc, id));
  return lpg_round_up_to(chunk * lpg_block_groups(lpg_section_axis(weights, id)) * slot, 16);
}

#endif
