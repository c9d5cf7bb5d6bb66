/* How a problem is cut for stripe: plain arithmetic, for C and CUDA.
 *
 * Work tiles are 32 rows of W a warp by 32, 64 or 128 rows of X. Each has one unit of work for every 128 or 64 k. All
 * units in a row, one work tile after the other, are dealt out evenly to the CTAs, a stripe each. So a CTA has some
 * work tiles whole, and of at most two a part of K, whose sums go to the workspace; a second kernel adds them. */
#ifndef LPG_KERNELS_STRIPE_PLAN_H
#define LPG_KERNELS_STRIPE_PLAN_H

#include "../epilogue/sums.h"
#include "../plan/partition.h"

enum {
  LPG_STRIPE_WARPS = 4,       /* of a CTA */
  LPG_STRIPE_ROW_TILES = 2,   /* of a warp */
  LPG_STRIPE_SCALED_M = 128,  /* rows of X of a work tile of scaled weights */
  LPG_STRIPE_MOST_STAGES = 4, /* of the ring */
  LPG_STRIPE_MOST_PIECES = 64 /* of 16 or 8 bytes, of a warp's scales and zeros of a unit: two of a lane */
};

/* K's of a unit, and of a stage of the ring. Half as many where tiles are short enough and two stages of two CTAs would
 * not fit into the 99 KB of most GPUs; integers of 4 bits, which were measured with 128, stay with them. */
LPG_FN int lpg_stripe_k(int bits, int is_integer) { return bits == 8 || (bits == 4 && !is_integer) ? 64 : 128; }

static inline int lpg_stripe_k_of(const lpg_packed *weights) {
  return lpg_stripe_k(weights->bits, lpg_is_integer_kind(weights->desc.type));
}

/* Scale groups of a unit for which there are kernels: one; those of groups of 32, which shorter units do not need for
 * groups of 64; those of groups of 16. */
static inline int lpg_stripe_groups(const lpg_packed *weights) {
  const int k = lpg_stripe_k_of(weights);
  if (weights->group.count <= 1 || weights->group.k >= k) return 1;
  return k / (weights->group.k == 16 ? 16 : 32);
}

/* Bytes of a row tile's codes of a unit. */
LPG_FN int lpg_stripe_code_bytes(int bits, int unit_k) { return LPG_TILE_ROWS * unit_k * bits / 8; }

/* The packed values of one section for one row tile and a unit, in shared memory. */
static inline int lpg_stripe_section_bytes(const lpg_packed *weights, lpg_section_id id) {
  const lpg_axis *axis = lpg_section_axis(weights, id);
  if (weights->section[id].bytes == 0) return 0;
  const int64_t groups = axis->count > 1 && axis->k < lpg_stripe_k_of(weights) ? lpg_stripe_k_of(weights) / axis->k : 1;
  return lpg_round_up_to(groups * lpg_slot_bytes(lpg_section_type(&weights->desc, id)), 16);
}

/* A row tile's values of one section and unit come in pieces of 16 bytes, or of 8 where those of a group are no more.
 */
static inline int lpg_stripe_pieces(const lpg_packed *weights, lpg_section_id id) {
  const lpg_axis *axis = lpg_section_axis(weights, id);
  if (weights->section[id].bytes == 0) return 0;
  const int slot = lpg_slot_bytes(lpg_section_type(&weights->desc, id)), unit_k = lpg_stripe_k_of(weights);
  const int groups = axis->count > 1 && axis->k < unit_k ? (int)(unit_k / axis->k) : 1;
  return groups * slot / (slot < 16 ? 8 : 16);
}

/* What scaled weights are multiplied by: numbers of 16 bits; of e2m1, the only floats, a number of 8 bits for 32 or 16
 * columns. */
typedef enum lpg_stripe_multipliers {
  LPG_STRIPE_BY_16_BITS,
  LPG_STRIPE_BY_E8M0,
  LPG_STRIPE_BY_E4M3
} lpg_stripe_multipliers;
LPG_FN lpg_stripe_multipliers lpg_stripe_multipliers_of(int is_float, int scale_groups) {
  return !is_float ? LPG_STRIPE_BY_16_BITS : scale_groups == 4 ? LPG_STRIPE_BY_E4M3 : LPG_STRIPE_BY_E8M0;
}

/* Whether there are kernels of scaled weights. */
LPG_FN int lpg_stripe_has_scaled(int bits, int is_integer, int is_float, int scale_groups, int unit_k) {
  if (!is_integer && bits != 4) return 0;
  if (is_float) return scale_groups > 1;
  return scale_groups == 1 || ((bits == 4 || bits == 8) && scale_groups == unit_k / 32);
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
  int32_t scale_groups; /* of a unit for which the kernel has been compiled */
  int32_t zeros;   /* 1: centers differ, or, without scaled weights, something is left of zeros, or there are several
                      scale groups */
  int32_t shift;   /* 1: something is left of zeros, which meets the sums of X */
  int32_t at_once; /* CTAs of an SM */
} lpg_stripe_plan;

/* Bytes of a warp's table of scales, shifts and centers. */
LPG_FN int lpg_stripe_table_bytes(int scale_groups) { return LPG_STRIPE_ROW_TILES * scale_groups * 8 * 24; }

LPG_FN int lpg_stripe_tile_n(int warps) { return warps * LPG_STRIPE_ROW_TILES * LPG_TILE_ROWS; }

/* Floats of the partial sums of a work tile. */
LPG_FN int64_t lpg_stripe_partial(const lpg_stripe_plan *p) { return (int64_t)lpg_stripe_tile_n(p->warps) * p->tile_m; }

/* Rows of X for which sums of X have room: whole work tiles. */
LPG_FN int64_t lpg_stripe_x_rows(const lpg_stripe_plan *p) { return (int64_t)p->m_tiles * p->tile_m; }

#endif
