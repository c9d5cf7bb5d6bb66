/* How a decode problem is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * K is cut into parts of K of whole k blocks; the CTAs of a cluster take one slice each of the
 * same rows (without clusters there is one slice). Rows are cut into super tiles of 16 or 32, dealt out evenly. The
 * weights go through registers; shared memory holds X and the sums. A large slice of X is loaded in phases, one while
 * the one before is multiplied, and super tiles whose sums do not fit are taken in rounds. */
#ifndef LPG_KERNELS_GEMV_PLAN_H
#define LPG_KERNELS_GEMV_PLAN_H

#include "../plan/partition.h"

/* ---- what a kernel's template and the weights fix ---- */

/* Steps of 16 columns that share a scale; 8 when groups are larger. */
static inline int lpg_gemv_scale_steps(const lpg_packed *weights) {
  const lpg_axis *group = &weights->group;
  return group->count <= 1 || group->k >= 128 ? 8 : group->k == 16 ? 1 : 2;
}

/* Warps of a CTA: 32 where 64 registers a lane do. */
LPG_FN int lpg_gemv_warps(int bits, int columns, int shifted) {
  return bits <= 4 && columns == 8 && !shifted ? 32 : 16;
}

/* Row tiles of a super tile: with more, what is read of X is used more often, and more weights are under way, for which
 * there are registers while codes are narrow. */
LPG_FN int lpg_gemv_row_tiles(int bits, int columns, int scale_group, int shifted) {
  if (scale_group == 1) return 1;
  return bits <= (lpg_gemv_warps(bits, columns, shifted) == 32 ? 2 : 4) ? 2 : 1;
}

/* Blocks whose scales and zeros are converted at once: as many as keep all lanes busy. */
LPG_FN int lpg_gemv_chunk(int row_tiles, int scale_group) {
  const int pairs = row_tiles * (LPG_BLOCK_K / LPG_STEP_K / scale_group) * 8;
  return pairs < 128 ? 128 / pairs : 1;
}

typedef struct lpg_gemv_kind {
  int tile_m;            /* of X that fit: 8 or 16 */
  int row_tiles;         /* of a super tile */
  int warps;             /* of a CTA */
  int scale_group_k;     /* columns that share a scale */
  int table_bytes;       /* the dequantiser's, in shared memory */
  int scale_table_bytes; /* a warp's table of scales and zeros */
  int raw_bytes;         /* scales and zeros of a chunk of blocks of a super tile, as they are packed */
  int has_sums;          /* sums of X a scale group are needed */
  int block_bytes;       /* packed, with scales and zeros, of a super tile */
} lpg_gemv_kind;

/* has_shift, zeros_differ: numbers.cuh. */
static inline lpg_gemv_kind lpg_gemv_kind_of(const lpg_packed *weights, int columns, int has_shift, int zeros_differ) {
  const int scale_group = lpg_gemv_scale_steps(weights), bits = weights->bits;
  const int is_codebook = lpg_kind(weights->desc.type) == LPGEMM_KIND_CODEBOOK && bits > 1;
  lpg_gemv_kind kind;
  kind.tile_m = columns;
  kind.row_tiles = lpg_gemv_row_tiles(bits, columns, scale_group, has_shift);
  kind.warps = lpg_gemv_warps(bits, columns, has_shift);
  kind.scale_group_k = scale_group * LPG_STEP_K;
  kind.table_bytes = is_codebook ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
  const int chunk = lpg_gemv_chunk(kind.row_tiles, scale_group);
  const int pairs = chunk * kind.row_tiles * (LPG_BLOCK_K / kind.scale_group_k) * 8;
  kind.scale_table_bytes = lpg_round_up_to(pairs * (8 + (has_shift ? 8 : 0) + (zeros_differ ? 4 : 0)), 128);
  kind.raw_bytes = 0;
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    kind.raw_bytes += kind.row_tiles * lpg_chunk_bytes(weights, (lpg_section_id)id, chunk);
  }
  kind.has_sums = has_shift;
  kind.block_bytes = kind.row_tiles * 2 * LPG_BLOCK_K * bits + kind.raw_bytes / chunk;
  return kind;
}

/* ---- the plan ---- */

typedef struct lpg_gemv_plan {
  int32_t blocks;               /* of 256 columns */
  int32_t super_tiles;          /* of rows */
  int32_t split_k, clusters;    /* parts of K, and groups of rows: parts of K * groups CTAs */
  lpg_partition k_part, n_part; /* blocks of a slice, super tiles of a group */
  int32_t x_rows;               /* rows of X */
  int32_t phase_blocks;         /* blocks of a phase, the most */
  int32_t round_tiles;          /* super tiles after which sums are combined */
  /* offsets in shared memory */
  int32_t x, x_stride, x_place, sums, slots, slot_bytes, peers, peer_bytes, warp, warp_bytes, scale_table_bytes,
      shared_bytes;
} lpg_gemv_plan;

static inline int32_t lpg_gemv_part_blocks(const lpg_gemv_plan *p) { return p->k_part.each + (p->k_part.more > 0); }
static inline int32_t lpg_gemv_cluster_tiles(const lpg_gemv_plan *p) { return p->n_part.each + (p->n_part.more > 0); }

/* Lays out shared memory for a number of rounds and phases; 0 if it does not fit. */
static inline int lpg_gemv_lay_out(lpg_gemv_plan *p, const lpg_gemv_kind *kind, int rounds, int phases,
                                   int64_t shared_memory) {
  const int tiles = lpg_gemv_cluster_tiles(p), blocks = lpg_gemv_part_blocks(p);
  p->round_tiles = (tiles + rounds - 1) / rounds;
  p->phase_blocks = (blocks + phases - 1) / phases;
  p->slot_bytes = kind->row_tiles * LPG_TILE_ROWS * kind->tile_m * 4;
  p->scale_table_bytes = kind->scale_table_bytes;
  p->warp_bytes = kind->scale_table_bytes + kind->raw_bytes;
  const int places = p->phase_blocks < blocks ? 2 : 1,
            peer_areas = p->split_k > 1 ? (rounds > 1 ? 2 : 1) * p->split_k : 0;
  p->x_stride = p->phase_blocks * LPG_BLOCK_K * 2 + 16; /* 16: rows begin in different banks */
  const int64_t scale_groups = (int64_t)p->phase_blocks * LPG_BLOCK_K / kind->scale_group_k;
  const int64_t sums = kind->has_sums ? scale_groups * kind->tile_m * 4 : 0;
  const int64_t x_place = (int64_t)p->x_rows * p->x_stride;
  const int64_t slots = (int64_t)(p->round_tiles + kind->warps - 1) * p->slot_bytes;
  const int64_t peers = (p->round_tiles + p->split_k - 1) / p->split_k * (int64_t)p->slot_bytes;
  const int64_t own = (int64_t)kind->warps * p->warp_bytes;
  if (kind->table_bytes + places * x_place + sums + slots + peer_areas * peers + own > shared_memory) return 0;
  p->x = kind->table_bytes;
  p->x_place = (int)x_place;
  p->sums = p->x + places * p->x_place;
  p->slots = p->sums + (int)sums;
  p->peers = p->slots + (int)slots;
  p->peer_bytes = (int)peers;
  p->warp = p->peers + peer_areas * (int)peers;
  p->shared_bytes = p->warp + (int)own;
  return 1;
}

/* Nanoseconds that the plan may take: the slowest CTA reads its weights at its share of the memory, after
 * it has loaded the first phase of X from L2, and in the end sums are added up. */
static inline double lpg_gemv_cost(const lpg_gemv_plan *p, const lpg_gemv_kind *kind) {
  const int tiles = lpg_gemv_cluster_tiles(p), blocks = lpg_gemv_part_blocks(p);
  const int rounds = (tiles + p->round_tiles - 1) / p->round_tiles;
  const int phases = p->phase_blocks > 0 ? (blocks + p->phase_blocks - 1) / p->phase_blocks : 1;
  const int units = p->round_tiles * (p->phase_blocks + !p->phase_blocks),
            most = (units + kind->warps - 1) / kind->warps;
  const double uneven = (double)most * kind->warps / units;
  const double weights = (double)tiles * blocks * kind->block_bytes / 34.0 * (0.5 + 0.5 * uneven);
  const double sums = (double)tiles * p->slot_bytes * (0.15 / 4) / (p->split_k > 1 ? 1 : 2);
  const double row = 512.0 * p->x_rows / 40.0, later = row * blocks * (phases > 1 ? rounds : 1) * 0.3;
  return weights + row * p->phase_blocks * 0.7 + later + sums + rounds * (p->split_k > 1 ? 900.0 : 400.0) +
         (rounds * phases - 1) * 700.0;
}

/* The problem in so many parts of K, not laid out yet; 0 if it has no so many, or the device none that run at once. */
static inline int lpg_gemv_cut(const lpg_gemv_kind *kind, const lpg_packed *weights, int64_t m,
                               const lpg_device *device, int split_k_log2, lpg_gemv_plan *p) {
  const int32_t most = split_k_log2 > 0 ? device->clusters[1 << split_k_log2] : device->sms;
  p->blocks = (int32_t)((weights->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  p->super_tiles = (int32_t)((weights->row_tiles + kind->row_tiles - 1) / kind->row_tiles);
  p->split_k = 1 << split_k_log2;
  p->clusters = most < p->super_tiles ? most : p->super_tiles;
  if (p->clusters <= 0 || (split_k_log2 > 0 && p->split_k > p->blocks)) return 0;
  p->k_part = lpg_partition_of(p->blocks, p->split_k);
  p->n_part = lpg_partition_of(p->super_tiles, p->clusters);
  p->x_rows = (int32_t)(m < kind->tile_m ? m : kind->tile_m);
  return 1;
}

/* 1 if there is a plan: if one slice, in as many rounds and phases as there can be, has the shared memory. */
static inline int lpg_gemv_fits(const lpg_gemv_kind *kind, const lpg_packed *weights, int64_t m,
                                const lpg_device *device) {
  lpg_gemv_plan p = LPG_ZERO;
  if (!lpg_gemv_cut(kind, weights, m, device, 0, &p)) return 0;
  return lpg_gemv_lay_out(&p, kind, lpg_gemv_cluster_tiles(&p), p.blocks > 0 ? p.blocks : 1, device->shared_memory);
}

/* The plan for m rows that takes the least time; 0 if shared memory does not do. More than two rounds, each in all the
 * phases that may be needed, are for matrices of millions of rows. */
static inline int lpg_gemv_make_plan(const lpg_gemv_kind *kind, const lpg_packed *weights, int64_t m,
                                     const lpg_device *device, lpg_gemv_plan *plan) {
  double least = -1;
  for (int i = 0; i < LPG_CLUSTER_SIZES; i++) {
    lpg_gemv_plan p = LPG_ZERO;
    if (!lpg_gemv_cut(kind, weights, m, device, i, &p)) continue;
    const int tiles = lpg_gemv_cluster_tiles(&p), blocks = lpg_gemv_part_blocks(&p);
    for (int rounds = 1; rounds <= tiles && (rounds <= 2 || least < 0); rounds++) {
      for (int phases = 1, more = 1; more; phases = phases * 2 < blocks ? phases * 2 : blocks) {
        more = phases < blocks;
        if (!lpg_gemv_lay_out(&p, kind, rounds, phases, device->shared_memory)) continue;
        const double cost = lpg_gemv_cost(&p, kind);
        if (least >= 0 && cost >= least) continue;
        least = cost;
        *plan = p;
      }
    }
  }
  return least >= 0;
}

#endif
