/* The planner of the segment form: the ways to cut it, what they cost. */
#include "gemv_segment_plan.h"

#include <math.h>

#include "../plan/rates.h"

enum { MOST_UNITS = 1 << 20 }; /* (strip, k block) pairs of a round that kernels can divide */

typedef struct segment_state {
  lpg_gemv_kind kind;
  lpg_segment_plan frame; /* of the split-K at hand */
  int32_t blocks, super_tiles, experts;
  int64_t most_items;
  double items, rows; /* to expect, and rows of X of one */
  const lpg_rates *rates;
} segment_state;

static int64_t less(int64_t a, int64_t b) { return a < b ? a : b; }
static int32_t up_by(int32_t x, int32_t y) { return (x + y - 1) / y; }

/* ---- candidates ---- */

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  segment_state *s = state;
  const lpg_packed *w = problem->weights;
  const int64_t dealt = problem->slots > 0 ? problem->slots : problem->m;
  const lpg_expected_rows rows = lpg_expected_rows_of(dealt, problem->experts);
  (void)self;
  s->rates = lpgemm_i_rates_of(device);
  s->kind = lpg_gemv_kind_of(w, LPG_STACK_COLUMNS, 0, 0);
  s->blocks = (int32_t)((w->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  s->super_tiles = (int32_t)((w->row_tiles + s->kind.row_tiles - 1) / s->kind.row_tiles);
  s->experts = problem->experts;
  s->most_items = lpg_most_tiles(&rows, LPG_STACK_COLUMNS);
  s->items = lpg_expected_tiles(&rows, LPG_STACK_COLUMNS);
  s->rows = (double)dealt / s->items;
}

/* K in 2^i parts, one for each CTA of a cluster. */
static int tile(const lpg_problem *problem, const lpg_device *device, int i, void *state) {
  segment_state *s = state;
  lpg_segment_plan *p = &s->frame;
  const lpg_segment_plan none = {0};
  (void)problem;
  if (i >= LPG_CLUSTER_SIZES) return LPG_NO_MORE;
  const int32_t most = i > 0 ? device->clusters[1 << i] : device->sms;
  *p = none;
  p->split_k = 1 << i;
  if (most <= 0 || (i > 0 && p->split_k > s->blocks)) return LPG_HOLE;
  if (s->most_items * s->super_tiles > INT32_MAX / 2) return LPG_HOLE; /* strips are counted in 32 bits */
  p->super_tiles = s->super_tiles;
  p->clusters = (int32_t)less(most, s->most_items * s->super_tiles);
  p->k_part = lpg_partition_of(s->blocks, p->split_k);
  return LPG_CANDIDATE;
}

static int32_t part_blocks(const lpg_segment_plan *p) { return p->k_part.each + (p->k_part.more > 0); }

/* Strips of the cluster that has most of them. */
static double cluster_strips(const segment_state *s, const lpg_segment_plan *p, double items) {
  return ceil(items * s->super_tiles / p->clusters);
}

/* Nanoseconds: as cost_of() of gemv_plan.c, and what a warp does where a strip begins and ends. */
static double cost_of(const segment_state *s, const lpg_segment_plan *p) {
  const int blocks = part_blocks(p), warps = s->kind.warps;
  const double strips = cluster_strips(s, p, s->items), round_tiles = fmin(p->round_tiles, strips);
  const double rounds = ceil(strips / round_tiles) + fmin(1.0, strips / s->super_tiles);
  const double units = round_tiles * blocks, uneven = ceil(units / warps) * warps / units;
  const double weights =
      strips * blocks * s->kind.block_bytes / lpg_dram_rate(s->rates) * (0.5 + 0.5 * fmin(uneven, 4.0));
  const double sums = strips * p->partial_bytes * (0.15 / 4) / (p->split_k > 1 ? 1 : 2);
  const double first_x = 512.0 * s->rows / 40.0 * blocks * 0.7;
  return weights + strips / warps * 150.0 + first_x + sums + rounds * (p->split_k > 1 ? 1600.0 : 1100.0);
}

/* All strips that an item may have in one round, then in more. */
static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  segment_state *s = state;
  lpg_segment_plan *p = plan;
  static const int32_t rounds[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  const double strips = cluster_strips(s, &s->frame, (double)s->most_items);
  const int32_t tiles = strips < s->super_tiles ? (int32_t)strips : s->super_tiles;
  (void)problem;
  (void)device;
  (void)least;
  if (i >= (int)(sizeof rounds / sizeof rounds[0]) || rounds[i] > tiles) return LPG_NO_MORE;
  *p = s->frame;
  p->round_tiles = up_by(tiles, rounds[i]);
  p->partial_bytes = s->kind.row_tiles * LPG_TILE_ROWS * 4 * s->kind.tile_m;
  if ((double)p->round_tiles * s->blocks >= MOST_UNITS) return LPG_HOLE;
  *ns = cost_of(s, p);
  return LPG_CANDIDATE;
}

static int lay_out(const lpg_device *device, const void *state, void *plan) {
  const segment_state *s = state;
  lpg_segment_plan *p = plan;
  const lpg_gemv_kind *kind = &s->kind;
  const double strips = cluster_strips(s, p, (double)s->most_items);
  const double rounds = ceil(strips / p->round_tiles) + ceil(strips / s->super_tiles) + 2; /* the most, and one word */
  const int areas = p->split_k > 1 ? 2 * p->split_k : 0;
  p->scale_table_bytes = kind->scale_table_bytes;
  p->warp_bytes = kind->scale_table_bytes + kind->raw_bytes;
  p->x_stride = part_blocks(p) * LPG_BLOCK_K * 2 + 16; /* 16: rows begin in different banks */
  p->x_bytes = kind->tile_m * p->x_stride;
  p->peer_bytes = up_by(p->round_tiles, p->split_k) * p->partial_bytes;
  const int64_t partials = (int64_t)(p->round_tiles + kind->warps - 1) * p->partial_bytes;
  const int64_t at_x = kind->table_bytes, at_experts = at_x + 2 * (int64_t)p->x_bytes;
  const int64_t at_rounds = lpg_round_up(at_experts + lpg_expert_rows_bytes(s->experts), 32);
  const int64_t at_partials = lpg_round_up(at_rounds + (int64_t)rounds * LPG_SEGMENT_ROUND_BYTES, 128);
  const int64_t at_peers = at_partials + partials;
  const int64_t at_warp = lpg_round_up(at_peers + (int64_t)areas * p->peer_bytes, 128);
  const int64_t all = at_warp + (int64_t)kind->warps * p->warp_bytes;
  if (all > device->shared_memory) return 0;
  p->x = (int32_t)at_x;
  p->experts = (int32_t)at_experts;
  p->rounds = (int32_t)at_rounds;
  p->partials = (int32_t)at_partials;
  p->peers = (int32_t)at_peers;
  p->warp = (int32_t)at_warp;
  p->shared_bytes = (int32_t)all;
  return 1;
}

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self;
  (void)device;
  return problem->experts ? lpgemm_i_gemv_stack_refuses(problem) : "it takes stacks of experts alone";
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_segment_plan *p = plan;
  const lpg_expected_rows rows = lpg_expected_rows_of(problem->m, problem->experts);
  (void)self;
  (void)device;
  lpgemm_i_gemv_stack_finish(problem->weights, p->split_k, p->clusters, p->shared_bytes, ns, launch);
  launch->work_tiles = (int64_t)(lpg_expected_tiles(&rows, LPG_STACK_COLUMNS) * p->super_tiles);
}

const lpg_planner lpgemm_i_segment_planner = {.refuses = refuses,
                                              .begin = begin,
                                              .tile = tile,
                                              .cut = cut,
                                              .lay_out = lay_out,
                                              .finish = finish,
                                              .no_plan = "the GPU has too little shared memory for it",
                                              .state_bytes = sizeof(segment_state),
                                              .plan_bytes = sizeof(lpg_segment_plan),
                                              .mma = LPG_MMA_SYNC_F16,
                                              .dequantises = LPG_DEQUANT_PER_TILE,
                                              .tile_m = LPG_STACK_COLUMNS};
