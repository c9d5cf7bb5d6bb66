/* The planner of the token form: what it refuses, the ways to cut it, what they cost. */
#include "gemv_fan_plan.h"

#include <math.h>

#include "../plan/rates.h"

enum { MOST_UNITS = 1 << 20 }; /* (strip, k block) pairs of a CTA that kernels can divide */

typedef struct fan_state {
  lpg_gemv_kind kind;
  lpg_fan_plan frame; /* of the split-K at hand */
  lpg_fan fan;
  int32_t blocks, super_tiles, tokens, slots;
  int64_t most_items;
  double items; /* to expect */
  const lpg_rates *rates;
} fan_state;

static int64_t less(int64_t a, int64_t b) { return a < b ? a : b; }
static int32_t up_by(int32_t x, int32_t y) { return (x + y - 1) / y; }

/* ---- candidates ---- */

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  fan_state *s = state;
  const lpg_packed *w = problem->weights;
  (void)self;
  s->rates = lpgemm_i_rates_of(device);
  s->kind = lpg_gemv_kind_of(w, LPG_STACK_COLUMNS, 0, 0);
  s->fan = problem->fan;
  s->blocks = (int32_t)((w->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  s->super_tiles = (int32_t)((w->row_tiles + s->kind.row_tiles - 1) / s->kind.row_tiles);
  s->tokens = (int32_t)problem->m;
  s->slots = (int32_t)problem->slots;
  s->most_items = less(s->slots, problem->experts + s->slots / LPG_STACK_COLUMNS);
  const lpg_expected_rows rows = lpg_expected_rows_of(s->slots, problem->experts);
  s->items = rows.used * fmax(1.0, rows.each / LPG_STACK_COLUMNS + 0.25);
  s->items = fmin(s->items, (double)s->most_items);
}

/* K in 2^i parts, one for each CTA of a cluster. */
static int tile(const lpg_problem *problem, const lpg_device *device, int i, void *state) {
  fan_state *s = state;
  lpg_fan_plan *p = &s->frame;
  const lpg_fan_plan none = {0};
  (void)problem;
  if (i >= LPG_CLUSTER_SIZES) return LPG_NO_MORE;
  const int32_t most = i > 0 ? device->clusters[1 << i] : device->sms;
  *p = none;
  p->split_k = 1 << i;
  if (most <= 0 || (i > 0 && p->split_k > s->blocks)) return LPG_HOLE;
  p->super_tiles = s->super_tiles;
  p->clusters = (int32_t)less(most, s->fan == LPG_FAN_OUT ? s->most_items * s->super_tiles : s->super_tiles);
  p->k_part = lpg_partition_of(s->blocks, p->split_k);
  p->tokens = s->tokens;
  p->slots = s->slots;
  p->x_rows = s->fan == LPG_FAN_OUT ? s->tokens : s->slots;
  return LPG_CANDIDATE;
}

static int32_t part_blocks(const lpg_fan_plan *p) { return p->k_part.each + (p->k_part.more > 0); }

/* Tiles of the cluster that has most of them. */
static int32_t cluster_tiles(const fan_state *s, const lpg_fan_plan *p, double items) {
  const double tiles = s->fan == LPG_FAN_OUT ? items * s->super_tiles : s->super_tiles;
  return (int32_t)ceil(tiles / p->clusters);
}

/* Nanoseconds: as cost_of() of gemv_plan.c, and what a warp does where a strip begins and ends. */
static double cost_of(const fan_state *s, const lpg_fan_plan *p) {
  const int blocks = part_blocks(p), warps = s->kind.warps, tiles = cluster_tiles(s, p, s->items);
  const int round_tiles = (int)less(p->round_tiles, tiles), rounds = up_by(tiles, round_tiles);
  const double each = s->fan == LPG_FAN_OUT ? 1.0 : s->items, strips = tiles * each;
  const double units = round_tiles * each * blocks, uneven = ceil(units / warps) * warps / units;
  const double weights =
      strips * blocks * s->kind.block_bytes / lpg_dram_rate(s->rates) * (0.5 + 0.5 * fmin(uneven, 4.0));
  const double strip = strips / warps * 150.0;
  const double sums = (double)tiles * p->partial_bytes * (0.15 / 4) / (p->split_k > 1 ? 1 : 2);
  const double row = 512.0 * p->x_rows / 40.0;
  return weights + strip + row * blocks * 0.7 + sums + rounds * (p->split_k > 1 ? 900.0 : 400.0) + rounds * 700.0;
}

/* All tiles in one round, then in more. */
static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  fan_state *s = state;
  lpg_fan_plan *p = plan;
  static const int32_t rounds[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  const int32_t tiles = cluster_tiles(s, &s->frame, (double)s->most_items);
  (void)problem;
  (void)device;
  (void)least;
  if (i >= (int)(sizeof rounds / sizeof rounds[0]) || rounds[i] > tiles) return LPG_NO_MORE;
  *p = s->frame;
  p->round_tiles = up_by(tiles, rounds[i]);
  p->partial_bytes = s->kind.row_tiles * LPG_TILE_ROWS * 4 * (s->fan == LPG_FAN_OUT ? LPG_STACK_COLUMNS : s->tokens);
  const double each = s->fan == LPG_FAN_OUT ? 1.0 : (double)s->most_items;
  if (p->round_tiles * each * s->blocks >= MOST_UNITS) return LPG_HOLE;
  if ((double)s->most_items * s->super_tiles >= MOST_UNITS) return LPG_HOLE;
  *ns = cost_of(s, p);
  return LPG_CANDIDATE;
}

static int lay_out(const lpg_device *device, const void *state, void *plan) {
  const fan_state *s = state;
  lpg_fan_plan *p = plan;
  const lpg_gemv_kind *kind = &s->kind;
  const int32_t tiles = cluster_tiles(s, p, (double)s->most_items);
  const int areas = p->split_k > 1 ? (p->round_tiles < tiles ? 2 : 1) * p->split_k : 0;
  p->scale_table_bytes = kind->scale_table_bytes;
  p->warp_bytes = kind->scale_table_bytes + kind->raw_bytes;
  p->x_stride = part_blocks(p) * LPG_BLOCK_K * 2 + 16; /* 16: rows begin in different banks */
  p->peer_bytes = up_by(p->round_tiles, p->split_k) * p->partial_bytes;
  const int64_t x = (int64_t)p->x_rows * p->x_stride, items = (int64_t)p->slots * LPG_FAN_ITEM_BYTES;
  const int64_t experts = lpg_round_up_to((int64_t)p->slots * 12 + LPG_FAN_MOST_SLOTS / 8 + 4, 128);
  const int64_t partials = (int64_t)(p->round_tiles + kind->warps - 1) * p->partial_bytes;
  const int64_t at_x = kind->table_bytes, at_items = at_x + x, at_experts = at_items + items;
  const int64_t at_partials = (at_experts + experts + 127) / 128 * 128, at_peers = at_partials + partials;
  const int64_t at_warp = (at_peers + (int64_t)areas * p->peer_bytes + 127) / 128 * 128;
  const int64_t all = at_warp + (int64_t)kind->warps * p->warp_bytes;
  if (all > device->shared_memory) return 0;
  p->x = (int32_t)at_x;
  p->items = (int32_t)at_items;
  p->experts = (int32_t)at_experts;
  p->partials = (int32_t)at_partials;
  p->peers = (int32_t)at_peers;
  p->warp = (int32_t)at_warp;
  p->shared_bytes = (int32_t)all;
  return 1;
}

/* ---- refusals ---- */

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *w = problem->weights;
  const char *reason = lpgemm_i_gemv_stack_refuses(problem);
  (void)self;
  (void)device;
  if (reason) return reason;
  if (problem->slots > LPG_FAN_MOST_SLOTS) {
    return "it does not take this many slots";
  }
  if (problem->x_scale_mode != LPGEMM_X_SCALE_NONE) return "it does not take activations of this type";
  if (w->desc.columns) return "it does not take an order of columns";
  if (problem->fan == LPG_FAN_IN && w->section[LPG_SECTION_ROW_SCALES].bytes) return "it takes no scales of rows";
  return NULL;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_fan_plan *p = plan;
  (void)self;
  (void)device;
  lpgemm_i_gemv_stack_finish(problem->weights, p->split_k, p->clusters, p->shared_bytes, ns, launch);
  launch->work_tiles = p->super_tiles;
}

const lpg_planner lpgemm_i_fan_planner = {.refuses = refuses,
                                          .begin = begin,
                                          .tile = tile,
                                          .cut = cut,
                                          .lay_out = lay_out,
                                          .finish = finish,
                                          .no_plan = "the GPU has too little shared memory for it",
                                          .state_bytes = sizeof(fan_state),
                                          .plan_bytes = sizeof(lpg_fan_plan),
                                          .mma = LPG_MMA_SYNC_F16,
                                          .dequantises = LPG_DEQUANT_PER_TILE,
                                          .tile_m = LPG_STACK_COLUMNS};
