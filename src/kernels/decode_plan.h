/* How a decode problem is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * K is cut into slices of whole blocks of 256 columns; the blocks of threads of a cluster take one slice each of the
 * same rows (without clusters there is one slice). Rows are cut into super tiles of 16 or 32, dealt out evenly. What a
 * block of threads needs of X stays in shared memory for the whole launch; what is left of shared memory is a ring of
 * stages for weights on their way. */
#ifndef LPG_KERNELS_DECODE_PLAN_H
#define LPG_KERNELS_DECODE_PLAN_H

#include <string.h>

#include "../internal.h"

enum {
  LPG_DECODE_WARPS = 16,
  LPG_DECODE_BLOCK_K = 256 /* columns that a warp takes at once: whole tiles of every width */
};

/* ---- what a kernel's template and the weights fix ---- */

/* Steps of 16 columns that share a scale; 8 when groups are larger. */
static inline int lpg_decode_granule(const lpg_plan *weights) {
  const lpg_axis *group = &weights->group;
  return group->count <= 1 || group->k >= 128 ? 8 : group->k == 16 ? 1 : 2;
}

/* Row tiles of a super tile. With two, what is read of X is used twice; wide codes fill the registers with one. */
LPG_FN int lpg_decode_row_tiles(int bits, int columns, int granule) {
  return granule > 1 && bits <= (columns == 8 ? 3 : 2) ? 2 : 1;
}

/* Stages of a warp's ring: 64 to 128 KB under way a block of threads, less where shared memory is small. */
LPG_FN int lpg_decode_stages(int bits, int columns, int clusters) {
  if (bits == 1) return 4;
  if (!clusters) return bits <= 3 ? 2 : 1;
  return bits == 4 && columns == 8 ? 3 : 2;
}

typedef struct lpg_decode_kind {
  int columns;      /* of X that fit: 8 or 16 */
  int row_tiles;    /* of a super tile */
  int granule_k;    /* columns that share a scale */
  int table_bytes;  /* the decoder's, in shared memory */
  int number_bytes; /* a warp's table of scales and zeros */
  int stage_bytes;  /* a block of a super tile with its scales and zeros */
  int stages;       /* of a warp's ring */
  int has_sums;     /* sums of X a granule are needed */
} lpg_decode_kind;

static inline int lpg_decode_round_up(int64_t x, int unit) { return (int)((x + unit - 1) / unit * unit); }

/* Groups of an axis that a block of columns has, at least one. */
static inline int lpg_decode_groups(const lpg_axis *axis) {
  return axis->count > 1 && axis->k < LPG_DECODE_BLOCK_K ? (int)(LPG_DECODE_BLOCK_K / axis->k) : 1;
}

/* Bytes of a section in a stage, for one row tile. */
static inline int lpg_decode_section_bytes(const lpg_plan *weights, lpg_section_id id) {
  if (weights->section[id].bytes == 0) return 0;
  const int slot = lpg_slot_bytes(lpg_section_type(&weights->desc, id));
  return lpg_decode_round_up(lpg_decode_groups(lpg_section_axis(weights, id)) * slot, 16);
}

/* has_shift, zeros_differ: numbers.cuh. */
static inline lpg_decode_kind lpg_decode_kind_of(const lpg_plan *weights, int columns, int clusters, int has_shift,
                                                 int zeros_differ) {
  const int granule = lpg_decode_granule(weights), bits = weights->bits;
  const int is_codebook = lpg_kind(weights->desc.type) == LPGEMM_KIND_CODEBOOK && bits > 1;
  lpg_decode_kind kind;
  kind.columns = columns;
  kind.row_tiles = lpg_decode_row_tiles(bits, columns, granule);
  kind.granule_k = granule * LPG_STEP_K;
  kind.table_bytes = is_codebook ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
  const int pairs = kind.row_tiles * (LPG_DECODE_BLOCK_K / kind.granule_k) * 8;
  kind.number_bytes = lpg_decode_round_up(pairs * (8 + (has_shift ? 8 : 0) + (zeros_differ ? 4 : 0)), 128);
  kind.stage_bytes = 2 * LPG_DECODE_BLOCK_K * bits;
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    kind.stage_bytes += lpg_decode_section_bytes(weights, (lpg_section_id)id);
  }
  kind.stage_bytes = lpg_decode_round_up((int64_t)kind.row_tiles * kind.stage_bytes, 128);
  kind.stages = lpg_decode_stages(bits, columns, clusters);
  kind.has_sums = has_shift;
  return kind;
}

/* ---- the plan ---- */

/* `parts` parts of a number of things: all have `each`, the first `more` one more. */
typedef struct lpg_shares {
  int32_t each, more;
} lpg_shares;

typedef struct lpg_decode_plan {
  int32_t blocks;          /* of 256 columns */
  int32_t super_tiles;     /* of rows */
  int32_t slices, groups;  /* slices of K, and groups of rows: slices * groups blocks of threads */
  lpg_shares slice, group; /* blocks of a slice, super tiles of a group */
  int32_t x_rows;          /* rows of X a pass */
  int32_t round_tiles;     /* super tiles after which sums are combined */
  /* offsets in shared memory */
  int32_t x, x_stride, sums, slots, slot_bytes, inbox, inbox_slice, spans, numbers, ring, stage_bytes, shared_bytes;
} lpg_decode_plan;

static inline lpg_shares lpg_shares_of(int32_t count, int32_t parts) {
  lpg_shares s;
  s.each = count / parts;
  s.more = count % parts;
  return s;
}

/* Lays out shared memory for a plan whose slices and x_rows are set, in as few rounds as it fits; 0 if it does not. */
static inline int lpg_decode_lay_out(lpg_decode_plan *p, const lpg_decode_kind *kind, int64_t shared_memory) {
  const int slice_blocks = (p->blocks + p->slices - 1) / p->slices;
  const int64_t slice_k = (int64_t)slice_blocks * LPG_DECODE_BLOCK_K;
  if (slice_k * 2 * p->x_rows > shared_memory) return 0;
  const int tiles = (p->super_tiles + p->groups - 1) / p->groups;
  const int least = tiles < LPG_DECODE_WARPS / 4 ? tiles : LPG_DECODE_WARPS / 4;
  p->x = kind->table_bytes;
  p->x_stride = (int)slice_k * 2 + 16; /* 16: rows begin in different banks */
  p->sums = lpg_decode_round_up(p->x + (int64_t)p->x_rows * p->x_stride, 128);
  p->slots = p->sums + (kind->has_sums ? (int)(slice_k / kind->granule_k) * kind->columns * 4 : 0);
  p->slot_bytes = kind->row_tiles * LPG_TILE_ROWS * p->x_rows * 4;
  p->stage_bytes = kind->stage_bytes;
  for (int rounds = 1; rounds <= tiles; rounds++) {
    p->round_tiles = (tiles + rounds - 1) / rounds;
    if (p->round_tiles < least) break;
    const int64_t inbox = p->slots + (int64_t)(p->round_tiles + LPG_DECODE_WARPS - 1) * p->slot_bytes;
    const int64_t slice = p->slices > 1 ? (p->round_tiles + p->slices - 1) / p->slices * (int64_t)p->slot_bytes : 0;
    const int64_t spans = inbox + (rounds > 1 ? 2 : 1) * p->slices * slice;
    if (spans > shared_memory) continue;
    p->inbox = (int)inbox;
    p->inbox_slice = (int)slice;
    p->spans = (int)spans;
    p->numbers = lpg_decode_round_up(spans + p->round_tiles * 4, 128);
    p->ring = p->numbers + LPG_DECODE_WARPS * kind->number_bytes;
    p->shared_bytes = p->ring + LPG_DECODE_WARPS * kind->stage_bytes * kind->stages;
    if (p->shared_bytes <= shared_memory) return 1;
  }
  return 0;
}

/* Nanoseconds that the plan may take: the slowest block of threads reads its weights at its share of the memory; then
 * it brings its part of X from L2, and adds up sums. */
static inline double lpg_decode_cost(const lpg_decode_plan *p, const lpg_decode_kind *kind) {
  const int tiles = (p->super_tiles + p->groups - 1) / p->groups, blocks = (p->blocks + p->slices - 1) / p->slices;
  const int rounds = (tiles + p->round_tiles - 1) / p->round_tiles;
  const int units = p->round_tiles * blocks, most = (units + LPG_DECODE_WARPS - 1) / LPG_DECODE_WARPS;
  const double uneven = (double)most * LPG_DECODE_WARPS / units;
  const double weights = (double)tiles * blocks * kind->stage_bytes / 34.0 * (0.5 + 0.5 * uneven);
  const double sums = (double)tiles * p->slot_bytes * (0.15 / 4) / (p->slices > 1 ? 1 : 2);
  return weights + blocks * 512.0 * p->x_rows / 40.0 + sums + rounds * (p->slices > 1 ? 900.0 : 400.0);
}

/* The pieces of a problem for so many slices and rows of X a pass; 0 if there are none. */
static inline int lpg_decode_cut(const lpg_decode_kind *kind, const lpg_plan *weights, const lpg_device *device,
                                 int clusters, int slices_log2, int rows, lpg_decode_plan *p) {
  const int32_t most = clusters ? device->clusters[slices_log2] : device->units;
  memset(p, 0, sizeof *p);
  p->blocks = (int32_t)((weights->k_padded + LPG_DECODE_BLOCK_K - 1) / LPG_DECODE_BLOCK_K);
  p->super_tiles = (int32_t)((weights->row_tiles + kind->row_tiles - 1) / kind->row_tiles);
  p->slices = 1 << slices_log2;
  p->groups = most < p->super_tiles ? most : p->super_tiles;
  if (p->groups <= 0 || (slices_log2 > 0 && p->slices > p->blocks)) return 0;
  p->slice = lpg_shares_of(p->blocks, p->slices);
  p->group = lpg_shares_of(p->super_tiles, p->groups);
  p->x_rows = rows;
  return lpg_decode_lay_out(p, kind, device->shared_memory);
}

/* 1 if there is a plan: if the most slices do with one row of X a pass. */
static inline int lpg_decode_fits(const lpg_decode_kind *kind, const lpg_plan *weights, const lpg_device *device,
                                  int clusters) {
  lpg_decode_plan p;
  for (int i = clusters ? LPG_CLUSTER_SIZES - 1 : 0; i >= 0; i--) {
    if (lpg_decode_cut(kind, weights, device, clusters, i, 1, &p)) return 1;
  }
  return 0;
}

/* The plan for m rows; 0 if shared memory does not do. Without clusters every block of threads is one. */
static inline int lpg_decode_make_plan(const lpg_decode_kind *kind, const lpg_plan *weights, int64_t m,
                                       const lpg_device *device, int clusters, lpg_decode_plan *plan) {
  double least = 0;
  int found = 0;
  for (int rows = (int)(m < kind->columns ? m : kind->columns); rows > 0 && !found; rows = rows > 8 ? 8 : rows / 2) {
    for (int i = 0; i < (clusters ? LPG_CLUSTER_SIZES : 1); i++) {
      lpg_decode_plan p;
      if (!lpg_decode_cut(kind, weights, device, clusters, i, rows, &p)) continue;
      const double cost = lpg_decode_cost(&p, kind);
      if (found && cost >= least) continue;
      found = 1;
      least = cost;
      *plan = p;
    }
  }
  return found;
}

#endif
