/* How a decode problem is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * K is cut into slices of whole blocks of 256 columns; the blocks of threads of a cluster take one slice each of the
 * same rows (without clusters there is one slice). Rows are cut into super tiles of 16 or 32, dealt out evenly. The
 * weights go through registers; shared memory holds X and the sums. A large slice of X is brought in phases, one while
 * the one before is multiplied, and super tiles whose sums do not fit are taken in rounds. */
#ifndef LPG_KERNELS_DECODE_PLAN_H
#define LPG_KERNELS_DECODE_PLAN_H

#include "../plan/partition.h"

/* ---- what a kernel's template and the weights fix ---- */

/* Steps of 16 columns that share a scale; 8 when groups are larger. */
static inline int lpg_decode_granule(const lpg_plan *weights) {
  const lpg_axis *group = &weights->group;
  return group->count <= 1 || group->k >= 128 ? 8 : group->k == 16 ? 1 : 2;
}

/* Warps of a block of threads: 32 where 64 registers a lane do. */
LPG_FN int lpg_decode_warps(int bits, int columns, int shifted) {
  return bits <= 4 && columns == 8 && !shifted ? 32 : 16;
}

/* Row tiles of a super tile: with more, what is read of X is used more often, and more weights are under way, for which
 * there are registers while codes are narrow. */
LPG_FN int lpg_decode_row_tiles(int bits, int columns, int granule, int shifted) {
  if (granule == 1) return 1;
  return bits <= (lpg_decode_warps(bits, columns, shifted) == 32 ? 2 : 4) ? 2 : 1;
}

/* Blocks whose scales and zeros are converted at once: as many as keep all lanes busy. */
LPG_FN int lpg_decode_chunk(int row_tiles, int granule) {
  const int pairs = row_tiles * (LPG_BLOCK_K / LPG_STEP_K / granule) * 8;
  return pairs < 128 ? 128 / pairs : 1;
}

typedef struct lpg_decode_kind {
  int columns;      /* of X that fit: 8 or 16 */
  int row_tiles;    /* of a super tile */
  int warps;        /* of a block of threads */
  int granule_k;    /* columns that share a scale */
  int table_bytes;  /* the decoder's, in shared memory */
  int number_bytes; /* a warp's table of scales and zeros */
  int raw_bytes;    /* scales and zeros of a chunk of blocks of a super tile, as they are packed */
  int has_sums;     /* sums of X a granule are needed */
  int block_bytes;  /* packed, with scales and zeros, of a super tile */
} lpg_decode_kind;

/* has_shift, zeros_differ: numbers.cuh. */
static inline lpg_decode_kind lpg_decode_kind_of(const lpg_plan *weights, int columns, int has_shift,
                                                 int zeros_differ) {
  const int granule = lpg_decode_granule(weights), bits = weights->bits;
  const int is_codebook = lpg_kind(weights->desc.type) == LPGEMM_KIND_CODEBOOK && bits > 1;
  lpg_decode_kind kind;
  kind.columns = columns;
  kind.row_tiles = lpg_decode_row_tiles(bits, columns, granule, has_shift);
  kind.warps = lpg_decode_warps(bits, columns, has_shift);
  kind.granule_k = granule * LPG_STEP_K;
  kind.table_bytes = is_codebook ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
  const int chunk = lpg_decode_chunk(kind.row_tiles, granule);
  const int pairs = chunk * kind.row_tiles * (LPG_BLOCK_K / kind.granule_k) * 8;
  kind.number_bytes = lpg_round_up_to(pairs * (8 + (has_shift ? 8 : 0) + (zeros_differ ? 4 : 0)), 128);
  kind.raw_bytes = 0;
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    kind.raw_bytes += kind.row_tiles * lpg_chunk_bytes(weights, (lpg_section_id)id, chunk);
  }
  kind.has_sums = has_shift;
  kind.block_bytes = kind.row_tiles * 2 * LPG_BLOCK_K * bits + kind.raw_bytes / chunk;
  return kind;
}

/* ---- the plan ---- */

typedef struct lpg_decode_plan {
  int32_t blocks;          /* of 256 columns */
  int32_t super_tiles;     /* of rows */
  int32_t slices, groups;  /* slices of K, and groups of rows: slices * groups blocks of threads */
  lpg_shares slice, group; /* blocks of a slice, super tiles of a group */
  int32_t x_rows;          /* rows of X */
  int32_t phase_blocks;    /* blocks of a phase, the most */
  int32_t round_tiles;     /* super tiles after which sums are combined */
  /* offsets in shared memory */
  int32_t x, x_stride, x_place, sums, slots, slot_bytes, inbox, inbox_slice, warp, warp_bytes, number_bytes,
      shared_bytes;
} lpg_decode_plan;

static inline int32_t lpg_decode_slice_blocks(const lpg_decode_plan *p) { return p->slice.each + (p->slice.more > 0); }
static inline int32_t lpg_decode_group_tiles(const lpg_decode_plan *p) { return p->group.each + (p->group.more > 0); }

/* Lays out shared memory for a number of rounds and phases; 0 if it does not fit. */
static inline int lpg_decode_lay_out(lpg_decode_plan *p, const lpg_decode_kind *kind, int rounds, int phases,
                                     int64_t shared_memory) {
  const int tiles = lpg_decode_group_tiles(p), blocks = lpg_decode_slice_blocks(p);
  p->round_tiles = (tiles + rounds - 1) / rounds;
  p->phase_blocks = (blocks + phases - 1) / phases;
  p->slot_bytes = kind->row_tiles * LPG_TILE_ROWS * kind->columns * 4;
  p->number_bytes = kind->number_bytes;
  p->warp_bytes = kind->number_bytes + kind->raw_bytes;
  const int places = p->phase_blocks < blocks ? 2 : 1, inboxes = p->slices > 1 ? (rounds > 1 ? 2 : 1) * p->slices : 0;
  p->x_stride = p->phase_blocks * LPG_BLOCK_K * 2 + 16; /* 16: rows begin in different banks */
  const int64_t granules = (int64_t)p->phase_blocks * LPG_BLOCK_K / kind->granule_k;
  const int64_t sums = kind->has_sums ? granules * kind->columns * 4 : 0;
  const int64_t x_place = (int64_t)p->x_rows * p->x_stride;
  const int64_t slots = (int64_t)(p->round_tiles + kind->warps - 1) * p->slot_bytes;
  const int64_t inbox = (p->round_tiles + p->slices - 1) / p->slices * (int64_t)p->slot_bytes;
  const int64_t own = (int64_t)kind->warps * p->warp_bytes;
  if (kind->table_bytes + places * x_place + sums + slots + inboxes * inbox + own > shared_memory) return 0;
  p->x = kind->table_bytes;
  p->x_place = (int)x_place;
  p->sums = p->x + places * p->x_place;
  p->slots = p->sums + (int)sums;
  p->inbox = p->slots + (int)slots;
  p->inbox_slice = (int)inbox;
  p->warp = p->inbox + inboxes * (int)inbox;
  p->shared_bytes = p->warp + (int)own;
  return 1;
}

/* Nanoseconds that the plan may take: the slowest block of threads reads its weights at its share of the memory, after
 * it has brought the first phase of X from L2, and in the end sums are added up. */
static inline double lpg_decode_cost(const lpg_decode_plan *p, const lpg_decode_kind *kind) {
  const int tiles = lpg_decode_group_tiles(p), blocks = lpg_decode_slice_blocks(p);
  const int rounds = (tiles + p->round_tiles - 1) / p->round_tiles;
  const int phases = p->phase_blocks > 0 ? (blocks + p->phase_blocks - 1) / p->phase_blocks : 1;
  const int units = p->round_tiles * (p->phase_blocks + !p->phase_blocks),
            most = (units + kind->warps - 1) / kind->warps;
  const double uneven = (double)most * kind->warps / units;
  const double weights = (double)tiles * blocks * kind->block_bytes / 34.0 * (0.5 + 0.5 * uneven);
  const double sums = (double)tiles * p->slot_bytes * (0.15 / 4) / (p->slices > 1 ? 1 : 2);
  const double row = 512.0 * p->x_rows / 40.0, later = row * blocks * (phases > 1 ? rounds : 1) * 0.3;
  return weights + row * p->phase_blocks * 0.7 + later + sums + rounds * (p->slices > 1 ? 900.0 : 400.0) +
         (rounds * phases - 1) * 700.0;
}

/* The problem in so many slices, not laid out yet; 0 if it has no so many, or the device none that run at once. */
static inline int lpg_decode_slice(const lpg_decode_kind *kind, const lpg_plan *weights, int64_t m,
                                   const lpg_device *device, int slices_log2, lpg_decode_plan *p) {
  const int32_t most = slices_log2 > 0 ? device->clusters[1 << slices_log2] : device->units;
  p->blocks = (int32_t)((weights->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  p->super_tiles = (int32_t)((weights->row_tiles + kind->row_tiles - 1) / kind->row_tiles);
  p->slices = 1 << slices_log2;
  p->groups = most < p->super_tiles ? most : p->super_tiles;
  if (p->groups <= 0 || (slices_log2 > 0 && p->slices > p->blocks)) return 0;
  p->slice = lpg_shares_of(p->blocks, p->slices);
  p->group = lpg_shares_of(p->super_tiles, p->groups);
  p->x_rows = (int32_t)(m < kind->columns ? m : kind->columns);
  return 1;
}

/* 1 if there is a plan: if one slice, in as many rounds and phases as there can be, has the shared memory. */
static inline int lpg_decode_fits(const lpg_decode_kind *kind, const lpg_plan *weights, int64_t m,
                                  const lpg_device *device) {
  lpg_decode_plan p = LPG_ZERO;
  if (!lpg_decode_slice(kind, weights, m, device, 0, &p)) return 0;
  return lpg_decode_lay_out(&p, kind, lpg_decode_group_tiles(&p), p.blocks > 0 ? p.blocks : 1, device->shared_memory);
}

/* The plan for m rows that takes the least time; 0 if shared memory does not do. More than two rounds, each in all the
 * phases that may be needed, are for matrices of millions of rows. */
static inline int lpg_decode_make_plan(const lpg_decode_kind *kind, const lpg_plan *weights, int64_t m,
                                       const lpg_device *device, lpg_decode_plan *plan) {
  double least = -1;
  for (int i = 0; i < LPG_CLUSTER_SIZES; i++) {
    lpg_decode_plan p = LPG_ZERO;
    if (!lpg_decode_slice(kind, weights, m, device, i, &p)) continue;
    const int tiles = lpg_decode_group_tiles(&p), blocks = lpg_decode_slice_blocks(&p);
    for (int rounds = 1; rounds <= tiles && (rounds <= 2 || least < 0); rounds++) {
      for (int phases = 1, more = 1; more; phases = phases * 2 < blocks ? phases * 2 : blocks) {
        more = phases < blocks;
        if (!lpg_decode_lay_out(&p, kind, rounds, phases, device->shared_memory)) continue;
        const double cost = lpg_decode_cost(&p, kind);
        if (least >= 0 && cost >= least) continue;
        least = cost;
        *plan = p;
      }
    }
  }
  return least >= 0;
}

#endif
