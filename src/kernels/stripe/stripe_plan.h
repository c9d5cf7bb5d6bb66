/* How a problem is cut for stripe: plain arithmetic, for C and CUDA.
 *
 * A CTA has two teams of four warps. Both have the same work tile, 256 rows of W by 32 or 64 rows of X. K goes in slabs
 * of 64 k, and in units of work of four slabs, of which each team takes two neighbours. All units in a row, one work
 * tile after the other, are dealt out evenly to the CTAs, a stripe each. So a CTA has some work tiles whole, and of at
 * most two a part of K, whose sums go to the workspace; a second kernel adds them. */
#ifndef LPG_KERNELS_STRIPE_PLAN_H
#define LPG_KERNELS_STRIPE_PLAN_H

#include "../epilogue/sums.h"
#include "../plan/partition.h"

enum {
  LPG_STRIPE_K = 64,   /* k's of a slab, and of a team's stage of the ring */
  LPG_STRIPE_TEAM = 4, /* warps of a team */
  LPG_STRIPE_TEAMS = 2,
  LPG_STRIPE_THREADS = 32 * LPG_STRIPE_TEAM * LPG_STRIPE_TEAMS,
  LPG_STRIPE_PIECES_BYTES = LPG_STRIPE_THREADS * 24,
  LPG_STRIPE_TEAM_SLABS = 2, /* of a unit */
  LPG_STRIPE_UNIT_K = LPG_STRIPE_TEAMS * LPG_STRIPE_TEAM_SLABS * LPG_STRIPE_K,
  LPG_STRIPE_ROW_TILES = 4,                               /* of a warp */
  LPG_STRIPE_ROWS = LPG_STRIPE_ROW_TILES * LPG_TILE_ROWS, /* of W, of a warp */
  LPG_STRIPE_TILE_N = LPG_STRIPE_TEAM * LPG_STRIPE_ROWS,
  LPG_STRIPE_STORED_ROWS = 32, /* rows of W whose sums go through shared memory at once */
  LPG_STRIPE_MOST_GROUPS = 2,  /* scale groups of a slab: those of groups of 32 */
  LPG_STRIPE_MOST_STAGES = 6   /* of the ring */
};

/* Vectors of 512 bytes of a row tile's codes of a slab. */
LPG_FN int lpg_stripe_vectors(int bits) { return bits / 4; }

/* The packed values of one section for one row tile and a slab, in shared memory. */
static inline int lpg_stripe_section_bytes(const lpg_packed *weights, lpg_section_id id) {
  const lpg_axis *axis = lpg_section_axis(weights, id);
  if (weights->section[id].bytes == 0) return 0;
  const int64_t groups = axis->count > 1 && axis->k < LPG_STRIPE_K ? LPG_STRIPE_K / axis->k : 1;
  return lpg_round_up_to(groups * lpg_slot_bytes(lpg_section_type(&weights->desc, id)), 16);
}

/* Everything a kernel needs to know of the cut. Places in shared memory count from its first byte. */
typedef struct lpg_stripe_plan {
  int32_t tile_m;                             /* rows of X of a work tile */
  int32_t units;                              /* of a work tile */
  int32_t n_tiles, m_tiles;                   /* work tiles along N and M */
  int32_t ctas;                               /* of the grid, all at once */
  lpg_partition stripes;                      /* units of a CTA */
  int32_t stages, stage_bytes;                /* of the ring of each team */
  int32_t codes, scales, sums_of_x;           /* in a team's stage; X is at its start */
  int32_t factors, sums, pieces, table, ring; /* the factor of rows of W; sums on their way; what lanes keep of the work
                                                 tile; scales of all warps; stages. The dequantiser's table: 0;
                                                 mbarriers: behind the factors */
  int32_t shared_bytes;
  int32_t scale_groups; /* of a slab for which the kernel has been compiled: 1 or 2 */
  int32_t zeros;        /* 1: centers differ, or something is left of zeros */
  int32_t shift;        /* 1: something is left of zeros, which meets the sums of X */
} lpg_stripe_plan;

/* Bytes of a warp's table of scales, shifts and centers. */
LPG_FN int lpg_stripe_table_bytes(int scale_groups) { return LPG_STRIPE_ROW_TILES * scale_groups * 8 * 24; }

/* Bytes of a warp where sums go to the other team, 8 rows of X at a time, and to Y. */
LPG_FN int lpg_stripe_warp_sums(void) { return lpg_sums_bytes(LPG_PASS_ROWS, LPG_STRIPE_STORED_ROWS); }

/* Floats of the sums of a work tile. */
LPG_FN int64_t lpg_stripe_sums(const lpg_stripe_plan *p) { return (int64_t)LPG_STRIPE_TILE_N * p->tile_m; }

/* Where in the workspace, in floats, a team keeps sums: of the CTA's first work tile, or of its others. Team 0: the
 * partial sums of the CTA, at the end. */
LPG_FN int64_t lpg_stripe_place(const lpg_stripe_plan *p, int cta, int team, int which) {
  return (((int64_t)cta * LPG_STRIPE_TEAMS + team) * 2 + which) * lpg_stripe_sums(p);
}

/* Slabs of K, whole units. */
LPG_FN int64_t lpg_stripe_slabs(const lpg_stripe_plan *p) {
  return (int64_t)p->units * (LPG_STRIPE_UNIT_K / LPG_STRIPE_K);
}

/* Rows of X for which sums of X have room: whole work tiles. */
LPG_FN int64_t lpg_stripe_x_rows(const lpg_stripe_plan *p) { return (int64_t)p->m_tiles * p->tile_m; }

#endif
