/* How a problem is cut for stripe: plain arithmetic, for C and CUDA.
 *
 * Work tiles are 32 rows of W a warp by 32 or 64 rows of X. Each has one unit of work for every 128 k. All units in a
 * row, one work tile after the other, are dealt out evenly to the CTAs, a stripe each. So a CTA has some work tiles
 * whole, and of at most two a part of K, whose sums go to the workspace; a second kernel adds them. */
#ifndef LPG_KERNELS_STRIPE_PLAN_H
#define LPG_KERNELS_STRIPE_PLAN_H

#include "../epilogue/sums.h"
#include "../plan/partition.h"

enum {
  LPG_STRIPE_K = 128,         /* k's of a unit, and of a stage of the ring */
  LPG_STRIPE_WARPS = 4,       /* of a CTA */
  LPG_STRIPE_ROW_TILES = 2,   /* of a warp */
  LPG_STRIPE_MOST_GROUPS = 4, /* scale groups of a unit: those of groups of 32 */
  LPG_STRIPE_MOST_STAGES = 4  /* of the ring */
};

/* Vectors of 512 bytes that hold a row tile's codes of a unit: whole ones, of 2, 4 and 8 bits. */
LPG_FN int lpg_stripe_vectors(int bits) { return bits / 2; }

/* The packed values of one section for one row tile and a unit, in shared memory. */
static inline int lpg_stripe_section_bytes(const lpg_packed *weights, lpg_section_id id) {
  const lpg_axis *axis = lpg_section_axis(weights, id);
  if (weights->section[id].bytes == 0) return 0;
  const int64_t groups = axis->count > 1 && axis->k < LPG_STRIPE_K ? LPG_STRIPE_K / axis->k : 1;
  return lpg_round_up_to(groups * lpg_slot_bytes(lpg_section_type(&weights->desc, id)), 16);
}

/* Everything a kernel needs to know of the cut. Places in shared memory count from its first byte. */
typedef struct lpg_stripe_plan {
  int32_t warps, tile_m;    /* of a work tile: 32 rows of W a warp; rows of X */
  int32_t units;            /* of a work tile */
  int32_t n_tiles, m_tiles; /* work tiles along N and M */
  int32_t ctas;             /* of the grid, all at once */
  lpg_partition stripes;    /* units of a CTA */
  int32_t stages, stage_bytes;
  int32_t codes, scales, sums_of_x; /* in a stage; X is at its start */
  int32_t warp_scales;              /* bytes of a warp's scales in a stage */
  int32_t factors, table, ring;     /* the factor of rows of W; scales of all warps; stages */
  int32_t shared_bytes;
  int32_t scale_groups; /* of a unit for which the kernel has been compiled: 1 or 4 */
  int32_t zeros;        /* 1: centers differ, or something is left of zeros */
  int32_t shift;        /* 1: something is left of zeros, which meets the sums of X */
  int32_t at_once;      /* CTAs of an SM */
} lpg_stripe_plan;

/* Bytes of a warp's table of scales, shifts and centers. */
LPG_FN int lpg_stripe_table_bytes(int scale_groups) { return LPG_STRIPE_ROW_TILES * scale_groups * 8 * 24; }

LPG_FN int lpg_stripe_tile_n(int warps) { return warps * LPG_STRIPE_ROW_TILES * LPG_TILE_ROWS; }

/* Floats of the partial sums of a work tile. */
LPG_FN int64_t lpg_stripe_partial(const lpg_stripe_plan *p) { return (int64_t)lpg_stripe_tile_n(p->warps) * p->tile_m; }

/* Rows of X for which sums of X have room: whole work tiles. */
LPG_FN int64_t lpg_stripe_x_rows(const lpg_stripe_plan *p) { return (int64_t)p->m_tiles * p->tile_m; }

#endif
