/* The planner of stripe: what it refuses, the work tiles and grids that there are, what they cost. */
#include "stripe_plan.h"

#include <math.h>

#include "../operand/center.h"
#include "../operand/limits.h"
#include "../operand/x_copy.h"
#include "../plan/rates.h"

enum {
  LEAST_ROWS = 17,
  LEAST_STAGES = 2,
  MOST_SUMS = 40 << 20, /* bytes of sums of X */
  BARRIERS_BYTES = LPG_STRIPE_TEAMS * LPG_STRIPE_MOST_STAGES * 16,
  FACTORS_BYTES = LPG_STRIPE_STORED_ROWS * 4
};

enum { MOST_X_ROWS = 64, WORK_TILES = 2 }; /* of 64 and of 32 rows of X */

typedef struct stripe_state {
  lpg_stripe_plan frame; /* of the work tile at hand */
  int scales;            /* bytes of a team's scales of a slab */
  const lpg_rates *rates;
  double read; /* nanoseconds of reading the weights once */
} stripe_state;

/* ---- zeros ---- */

/* Whether something is left of zeros beside the centers of groups: not of integer zeros that are codes. */
static int has_rest(const lpgemm_weight_desc_t *d, const lpg_center *center) {
  if (!center->per_group) return center->rest != 0.0f;
  return d->zero == LPGEMM_ZERO_MINIMUM || lpg_is_real(d->zero_type) || lpg_kind(d->type) != LPGEMM_KIND_UINT;
}

static int scale_groups_of(const lpg_packed *w) {
  return w->group.count > 1 && w->group.k < LPG_STRIPE_K ? LPG_STRIPE_MOST_GROUPS : 1;
}

/* Bytes of the sums of X. */
static double sums_bytes(const lpg_packed *w, double m) {
  const lpg_center center = lpg_center_of(&w->desc);
  const double groups =
      ceil((double)w->desc.k / LPG_STRIPE_UNIT_K) * (LPG_STRIPE_UNIT_K / LPG_STRIPE_K) * scale_groups_of(w);
  return has_rest(&w->desc, &center) ? ceil(m / 64.0) * 64.0 * groups * 4.0 : 0.0;
}

/* ---- refusals ---- */

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *w = problem->weights;
  const char *reason = lpgemm_i_dequantisers_refuse(problem);
  const double slabs = ceil((double)w->desc.k / LPG_STRIPE_K) * ceil((double)w->desc.n / LPG_STRIPE_TILE_N);
  const int64_t groups = w->super.k / LPG_STRIPE_K;
  (void)self, (void)device;
  if (reason) return reason;
  if (problem->m < LEAST_ROWS) return "it is for 17 rows of X and more";
  if (w->desc.k == 0 || w->desc.n == 0) return "there is nothing to multiply";
  if (problem->x_unaligned && lpg_x_copy_bytes(problem, 2) == 0)
    return "rows of X do not begin at multiples of 16 bytes";
  if (w->desc.super_scale_type && w->super.count > 1 && (groups & (groups - 1)))
    return "it takes super-groups of 256, 512, 1024 ... columns and whole rows only";
  if (slabs * ceil((double)problem->m / 32.0) > INT32_MAX / 2) return "it takes no matrix as large as this";
  return sums_bytes(w, (double)problem->m) > MOST_SUMS ? "its scales and zeros take too much workspace" : NULL;
}

/* On a GPU that has wgmma the kernels for that are faster. */
static const char *automatic(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self, (void)problem;
  return device->arch == 90 ? "the form for sm_90a is faster on this GPU" : NULL;
}

/* ---- workspace ---- */

/* Bytes of what teams keep of sums. */
static size_t kept_bytes(const lpg_device *device) {
  const int64_t sms = device->sms > 0 ? device->sms : 1;
  return (size_t)(sms * LPG_STRIPE_TEAMS * 2 * MOST_X_ROWS * LPG_STRIPE_TILE_N * 4);
}

static size_t workspace(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self;
  return kept_bytes(device) + (size_t)sums_bytes(problem->weights, (double)problem->m) + lpg_x_copy_bytes(problem, 2);
}

/* ---- candidates ---- */

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  stripe_state *s = state;
  const lpg_packed *w = problem->weights;
  const lpg_center center = lpg_center_of(&w->desc);
  const int is_codebook = lpg_kind(w->desc.type) == LPGEMM_KIND_CODEBOOK && w->bits > 1;
  (void)self;
  s->rates = lpgemm_i_rates_of(device);
  s->read = (double)w->total_bytes / s->rates->dram;
  s->frame.units = (int32_t)lpg_ceil_div(w->desc.k, LPG_STRIPE_UNIT_K);
  s->frame.n_tiles = (int32_t)lpg_ceil_div(w->desc.n, LPG_STRIPE_TILE_N);
  s->frame.scale_groups = scale_groups_of(w);
  s->frame.zeros = lpg_has_shift(&center) || s->frame.scale_groups > 1;
  s->frame.shift = has_rest(&w->desc, &center);
  s->frame.factors = is_codebook ? (1 << 2 * w->bits) * LPG_LANES * 4 : 0;
  s->frame.sums = lpg_round_up_to(s->frame.factors + FACTORS_BYTES + BARRIERS_BYTES, 128);
  s->frame.pieces = s->frame.sums + LPG_STRIPE_TEAMS * LPG_STRIPE_TEAM * lpg_stripe_warp_sums();
  s->frame.table = s->frame.pieces + LPG_STRIPE_PIECES_BYTES;
  s->frame.ring = lpg_round_up_to(
      s->frame.table + LPG_STRIPE_TEAMS * LPG_STRIPE_TEAM * lpg_stripe_table_bytes(s->frame.scale_groups), 128);
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++)
    s->scales += LPG_STRIPE_TEAM * LPG_STRIPE_ROW_TILES * lpg_stripe_section_bytes(w, (lpg_section_id)id);
}

static int tile(const lpg_problem *problem, const lpg_device *device, int i, void *state) {
  stripe_state *s = state;
  lpg_stripe_plan *p = &s->frame;
  (void)device;
  if (i >= WORK_TILES) return LPG_NO_MORE;
  if (i == 0 && p->scale_groups > 1) return LPG_HOLE; /* it would take too many registers */
  p->tile_m = MOST_X_ROWS >> i;
  p->m_tiles = (int32_t)lpg_ceil_div(problem->m, p->tile_m);
  p->codes = p->tile_m * LPG_STRIPE_K * 2;
  p->scales = p->codes + LPG_STRIPE_TEAM * LPG_STRIPE_ROW_TILES * lpg_stripe_vectors(problem->weights->bits) * 512;
  p->sums_of_x = p->scales + s->scales;
  p->stage_bytes = lpg_round_up_to(p->sums_of_x + (p->shift ? p->scale_groups * p->tile_m * 4 : 0), 128);
  return LPG_CANDIDATE;
}

/* Nanoseconds. TO BE FITTED */
static double cost_of(const lpg_stripe_plan *p, const stripe_state *s) {
  const lpg_rates *r = s->rates;
  const double weights = (double)LPG_STRIPE_TILE_N * LPG_STRIPE_UNIT_K;
  const double multiply = 2.0 * weights * p->tile_m / (1e3 * r->mma_f16 / r->sms);
  const double slower = p->scale_groups > 1 ? p->shift ? 1.5 : 1.2 : p->shift ? 1.2 : p->zeros ? 1.05 : 1.0;
  const double unit = (1.2 * multiply + 0.3 * weights / r->dequant_int) * slower;
  const double units = p->stripes.each + (p->stripes.more > 0);
  const int whole = p->stripes.more == 0 && p->stripes.each % p->units == 0;
  const double partials = whole ? 0.0 : 3000.0 + (double)p->ctas * (double)lpg_stripe_sums(p) * 8.0 / r->l2;
  return 2500.0 + fmax(units * unit, s->read) + partials;
}

/* First all CTAs that run at once, then so many that each work tile has 1, 2 ... parts and no more. */
static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  const stripe_state *s = state;
  lpg_stripe_plan *p = plan;
  const int32_t most = device->sms > 0 ? device->sms : 1;
  const int64_t tiles = (int64_t)s->frame.n_tiles * s->frame.m_tiles, all = tiles * s->frame.units;
  const int64_t ctas = i > 0 ? tiles * i : most < all ? most : all;
  (void)problem, (void)least;
  if (ctas > most || i > s->frame.units) return LPG_NO_MORE;
  *p = s->frame;
  p->ctas = (int32_t)ctas;
  p->stripes = lpg_partition_of((int32_t)all, p->ctas);
  *ns = cost_of(p, s);
  return LPG_CANDIDATE;
}

static int lay_out(const lpg_device *device, const void *state, void *plan) {
  lpg_stripe_plan *p = plan;
  const int64_t stages = (device->shared_memory - p->ring) / (LPG_STRIPE_TEAMS * p->stage_bytes);
  (void)state;
  p->stages = (int32_t)(stages < LPG_STRIPE_MOST_STAGES ? stages : LPG_STRIPE_MOST_STAGES);
  p->shared_bytes = p->ring + LPG_STRIPE_TEAMS * p->stages * p->stage_bytes;
  return stages >= LEAST_STAGES;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_stripe_plan *p = plan;
  (void)self;
  launch->tile_n = LPG_STRIPE_TILE_N;
  launch->tile_m = p->tile_m;
  launch->clusters = p->ctas;
  launch->at_once = device->sms > 0 ? device->sms : 1;
  launch->work_tiles = (int64_t)p->n_tiles * p->m_tiles;
  launch->threads = LPG_STRIPE_THREADS;
  launch->shared_bytes = p->shared_bytes;
  launch->stages = p->stages;
  launch->us = ns / 1000.0 + lpg_x_copy_us(problem, 2) + (p->shift ? 2.0 : 0.0);
}

const lpg_planner lpgemm_i_stripe_planner = {.refuses = refuses,
                                             .automatic = automatic,
                                             .begin = begin,
                                             .tile = tile,
                                             .cut = cut,
                                             .lay_out = lay_out,
                                             .finish = finish,
                                             .workspace = workspace,
                                             .no_plan = "the GPU has too little shared memory for it",
                                             .state_bytes = sizeof(stripe_state),
                                             .plan_bytes = sizeof(lpg_stripe_plan),
                                             .mma = LPG_MMA_SYNC_F16,
                                             .dequantises = LPG_DEQUANT_PER_TILE};
