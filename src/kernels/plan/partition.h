/* Partitions: n equal things dealt out evenly to parts (clusters, CTAs, warps), and k blocks, the unit in which K is
 * dealt out. Plain arithmetic for C and CUDA; shared by the plans of all kernels. */
#ifndef LPG_KERNELS_PARTITION_H
#define LPG_KERNELS_PARTITION_H

#include <math.h>

#include "../../internal.h"

enum {
  LPG_BLOCK_K = 256, /* k's of a k block: a whole number of packed tiles of every width */
  LPG_PASS_ROWS = 16 /* rows of X whose sums a warp moves through shared memory at once */
};

/* The 16-bit type in which a kernel multiplies X: X's own, or fp16, which holds every 8-bit X exactly. */
static inline lpgemm_dtype_t lpg_half_type(lpgemm_dtype_t x_type) {
  return x_type == LPGEMM_BF16 ? LPGEMM_BF16 : LPGEMM_F16;
}

/* Things in parts: every part has `each` of them, the first `more` parts one more. */
typedef struct lpg_partition {
  int32_t each, more;
} lpg_partition;

LPG_FN lpg_partition lpg_partition_of(int32_t count, int32_t parts) {
  lpg_partition s = LPG_ZERO;
  s.each = count / parts;
  s.more = count % parts;
  return s;
}

/* How many work tiles the clusters take whole; the rest is cut into halves of tile_m. Halves are used if the last wave
 * is at most half full, so that every cluster gets at most one half, and if both halves of every work tile have rows of
 * X. m: rows of X in all. */
static inline int32_t lpg_whole_tiles(int32_t tiles, int32_t clusters, int64_t m, int tile_m) {
  const int32_t left = tiles % clusters;
  const int64_t last = (m - 1) % tile_m + 1; /* rows of X of the last work tile */
  return tiles > clusters && 2 * left <= clusters && 2 * last > tile_m ? tiles - left : tiles;
}

/* Whether each weight is read by one work tile alone: one along M, and none cut into halves. whole: as above, and those
 * that are dealt out by k blocks. */
LPG_FN int lpg_reads_once(int32_t n_tiles, int32_t m_tiles, int32_t whole) { return m_tiles == 1 && whole == n_tiles; }

/* ---- rows of X that only the device can count: those of the experts of a stack ---- */

/* What is expected of m rows that are dealt out at random, to all experts alike: experts that have some, and rows of
 * such an expert. Without a stack (experts 0) one has all. */
typedef struct lpg_expected_rows {
  int64_t m;
  int32_t experts;
  double used, each;
} lpg_expected_rows;

static inline lpg_expected_rows lpg_expected_rows_of(int64_t m, int32_t experts) {
  lpg_expected_rows r = {m, experts, 1.0, (double)m};
  if (experts > 0 && m > 0) {
    r.used = experts * (1.0 - pow(1.0 - 1.0 / experts, (double)m));
    r.each = (double)m / r.used;
  }
  return r;
}

/* The most work tiles along M that there may be. */
static inline int64_t lpg_most_tiles(const lpg_expected_rows *r, int tile_m) {
  const int64_t full = r->experts > 0 ? r->m / tile_m : (r->m + tile_m - 1) / tile_m;
  return full + (r->experts < r->m ? r->experts : r->m);
}

/* Eight equally likely numbers of rows of an expert. Tokens that choose independently make them binomial; the
 * deviations are the middles of eight equally likely parts of a normal distribution. Without a stack all are m. */
enum { LPG_ROW_EXAMPLES = 8 };
static inline double lpg_example_rows(const lpg_expected_rows *r, int i) {
  static const double deviations[LPG_ROW_EXAMPLES / 2] = {0.157, 0.489, 0.887, 1.534};
  const double off = deviations[i / 2] * sqrt(r->each * (1.0 - 1.0 / fmax(1.0, r->experts))),
               rows = round(i % 2 ? r->each + off : r->each - off);
  return rows > 1.0 ? rows : 1.0;
}

/* How many work tiles to expect. */
static inline double lpg_expected_tiles(const lpg_expected_rows *r, int tile_m) {
  double tiles = 0.0;
  for (int i = 0; i < LPG_ROW_EXAMPLES; i++) tiles += ceil(lpg_example_rows(r, i) / tile_m);
  return r->used * tiles / LPG_ROW_EXAMPLES;
}

/* What a kernel keeps of each expert in shared memory (expert_rows.cuh): two arrays, and their bytes. */
LPG_FN int lpg_expert_rows_pitch(int experts) { return (experts + 4) / 4 * 4; }
LPG_FN int lpg_expert_rows_bytes(int experts) { return experts > 0 ? lpg_expert_rows_pitch(experts) * 8 : 0; }

static inline int lpg_round_up_to(int64_t x, int multiple) { return (int)((x + multiple - 1) / multiple * multiple); }

/* A granule of an axis: columns of one group, 16 to 256 by powers of two, as many as k blocks and groups have whole
 * ones of. Where groups are larger or no powers of two, several granules in a row have the value of one group. */
static inline int lpg_granule_k(const lpg_axis *axis) {
  const int64_t most = axis->k & -axis->k;
  return most < LPG_BLOCK_K ? (int)most : (int)LPG_BLOCK_K;
}

/* Granules of an axis in a k block; 1 where one value is for the whole row. */
static inline int lpg_block_groups(const lpg_axis *axis) {
  return axis->count > 1 ? LPG_BLOCK_K / lpg_granule_k(axis) : 1;
}

/* Bytes of shared memory for a section's values of one row tile and `chunk` k blocks. */
static inline int lpg_chunk_bytes(const lpg_packed *weights, lpg_section_id id, int chunk) {
  if (weights->section[id].bytes == 0) return 0;
  const int slot = lpg_slot_bytes(lpg_section_type(&weights->desc, id));
  return lpg_round_up_to(chunk * lpg_block_groups(lpg_section_axis(weights, id)) * slot, 16);
}

#endif
