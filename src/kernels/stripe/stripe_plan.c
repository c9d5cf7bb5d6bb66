/* The planner of stripe: what it refuses, the work tiles and grids that there are, what they cost. */
#include "stripe_plan.h"

#include <math.h>

#include "../operand/center.h"
#include "../operand/limits.h"
#include "../operand/scaled.h"
#include "../operand/x_copy.h"
#include "../plan/rates.h"

enum {
  LEAST_ROWS = 17,
  MOST_UNSCALED = 64, /* rows of X that are too few for work tiles of scaled weights */
  LEAST_STAGES = 2,
  MOST_SUMS = 40 << 20,   /* bytes of sums of X */
  RESERVED_SHARED = 1024, /* of shared memory, beside what a CTA may use */
  FACTORS_BYTES = LPG_STRIPE_ROW_TILES * LPG_TILE_ROWS * 4
};

/* Rows of X, and how many such CTAs an SM runs at once. */
static const struct {
  int tile_m, at_once;
} work_tiles[] = {{LPG_STRIPE_SCALED_M, 2}, {LPG_STRIPE_SCALED_M, 1}, {64, 2}, {64, 1}, {32, 3}, {32, 2}, {32, 1}};
enum { WORK_TILES = sizeof work_tiles / sizeof work_tiles[0], FIRST_UNSCALED = 2 };

typedef struct stripe_state {
  lpg_stripe_plan frame; /* of the work tile at hand */
  int scales;            /* bytes of a warp's scales of a unit */
  const lpg_rates *rates;
  double read;                     /* nanoseconds of reading the weights once */
  double unit_weights, dequantise; /* of a unit: weights; nanoseconds of dequantising them */
  int unit_k;
  int zeros, group_zeros; /* the plan's without and with scaled weights */
} stripe_state;

/* ---- zeros ---- */

/* Whether something is left of zeros beside the centers of groups: not of integer zeros that are codes. */
static int has_rest(const lpgemm_weight_desc_t *d, const lpg_center *center) {
  if (!center->per_group) return center->rest != 0.0f;
  return d->zero == LPGEMM_ZERO_MINIMUM || lpg_is_real(d->zero_type) || lpg_kind(d->type) != LPGEMM_KIND_UINT;
}

/* The largest difference of the exponents of a row's scales for which weights are scaled. Powers of two times e2m1 are
 * exact 2^9 below fp16's normal numbers, too. */
static int span_limit(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type) {
  const int is_sum = x_type == LPGEMM_BF16 && d->scale_type == LPGEMM_F16;
  const int limit = lpgemm_i_scale_span_limit(d, x_type, is_sum, lpgemm_i_scale_exponent(d, x_type), 0);
  return d->scale_type == LPGEMM_E8M0 ? limit + 9 : limit;
}

/* Whether weights may be scaled before they are multiplied: of one level of scales; zeros are codes. */
static int may_scale(const lpg_problem *problem) {
  const lpg_packed *w = problem->weights;
  const lpgemm_weight_desc_t *d = &w->desc;
  const lpg_center center = lpg_center_of(d);
  const int bf16 = problem->x_type == LPGEMM_BF16, is_integer = lpg_is_integer_kind(d->type);
  const int is_float = lpg_kind(d->type) == LPGEMM_KIND_FLOAT, groups = lpg_stripe_groups(w);
  const lpg_stripe_multipliers by = lpg_stripe_multipliers_of(is_float, groups);
  const lpgemm_dtype_t scale = by == LPG_STRIPE_BY_E8M0               ? LPGEMM_E8M0
                               : by == LPG_STRIPE_BY_E4M3             ? LPGEMM_E4M3
                               : bf16 && d->scale_type == LPGEMM_BF16 ? LPGEMM_BF16
                                                                      : LPGEMM_F16;
  if (!lpg_stripe_has_scaled(w->bits, is_integer, is_float, groups, lpg_stripe_k_of(w))) return 0;
  if (d->scale_type != scale || d->super_scale_type || (is_float && d->type != LPGEMM_FLOAT(2, 1))) return 0;
  if (is_integer && (has_rest(d, &center) || (center.per_group && d->zero_type != LPGEMM_U8))) return 0;
  return (int)problem->scale_span <= span_limit(d, bf16 ? LPGEMM_BF16 : LPGEMM_F16);
}

/* Bytes of the sums of X. */
static double sums_bytes(const lpg_packed *w, double m) {
  const lpg_center center = lpg_center_of(&w->desc);
  const double groups = ceil((double)w->desc.k / lpg_stripe_k_of(w)) * lpg_stripe_groups(w);
  return has_rest(&w->desc, &center) ? ceil(m / 64.0) * 64.0 * groups * 4.0 : 0.0;
}

/* ---- refusals ---- */

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *w = problem->weights;
  const char *reason = lpgemm_i_dequantisers_refuse(problem);
  const double units = ceil((double)w->desc.k / lpg_stripe_k_of(w)) * ceil((double)w->desc.n / 128.0);
  int pieces = 0;
  (void)self, (void)device;
  if (reason) return reason;
  if (problem->m < LEAST_ROWS) return "it is for 17 rows of X and more";
  if (w->desc.k == 0 || w->desc.n == 0) return "there is nothing to multiply";
  if (units * ceil((double)problem->m / 32.0) > INT32_MAX / 2) return "it takes no matrix as large as this";
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++)
    pieces += LPG_STRIPE_ROW_TILES * lpg_stripe_pieces(w, (lpg_section_id)id);
  if (pieces > LPG_STRIPE_MOST_PIECES) return "its groups of 16 have too many bits of scale and zero a row";
  return sums_bytes(w, (double)problem->m) > MOST_SUMS ? "its scales and zeros take too much workspace" : NULL;
}

/* On a GPU that has wgmma the kernels for that are faster. */
static const char *automatic(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self, (void)problem;
  return device->arch == 90 ? "the form for sm_90a is faster on this GPU" : NULL;
}

/* ---- workspace ---- */

/* Bytes of partial sums: two work tiles of each CTA. The first that may be taken has the most on an SM. */
static size_t partial_bytes(const lpg_problem *problem, const lpg_device *device) {
  const int first = problem->m > MOST_UNSCALED && may_scale(problem) ? 0 : FIRST_UNSCALED;
  const int64_t ctas = (int64_t)(device->sms > 0 ? device->sms : 1) * work_tiles[first].at_once;
  return (size_t)(ctas * 2 * work_tiles[first].tile_m * lpg_stripe_tile_n(LPG_STRIPE_WARPS) * 4);
}

static size_t workspace(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self;
  return partial_bytes(problem, device) + (size_t)sums_bytes(problem->weights, (double)problem->m) +
         lpg_x_copy_bytes(problem, 2);
}

/* ---- candidates ---- */

/* Bytes of the codebook's table of pairs, which has a copy for each lane. */
static int table_bytes(const lpgemm_weight_desc_t *d) {
  const int bits = (int)lpg_bits(d->type);
  return lpg_kind(d->type) == LPGEMM_KIND_CODEBOOK && bits > 1 ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
}

/* Instructions that make a weight of fp16, those of integers of 4 bits being 1 (a weight takes 1.1): counted in the
 * machine code of the dequantisers for sm_80; of 8 bits, e2m1 and NF4 fitted to their times on the H200, 2026-11-26. */
static double instructions_of(const lpg_packed *w) {
  static const double integers[] = {0.9, 0.95, 1.15, 1.0, 1.3, 1.35, 1.5, 1.8},
                      floats[] = {1.9, 1.45, 2.0, 2.0, 2.0, 2.4};
  const int is_codebook = lpg_kind(w->desc.type) == LPGEMM_KIND_CODEBOOK && w->bits > 1;
  return is_codebook ? 2.0 : lpg_kind(w->desc.type) == LPGEMM_KIND_FLOAT ? floats[w->bits - 3] : integers[w->bits - 1];
}

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  stripe_state *s = state;
  const lpg_packed *w = problem->weights;
  const lpg_center center = lpg_center_of(&w->desc);
  (void)self;
  s->rates = lpgemm_i_rates_of(device);
  s->read = (double)w->total_bytes / s->rates->dram;
  s->unit_k = lpg_stripe_k_of(w);
  s->unit_weights = (double)lpg_stripe_tile_n(LPG_STRIPE_WARPS) * s->unit_k;
  s->dequantise = 0.8 * instructions_of(w) * s->unit_weights / s->rates->dequant_int;
  s->frame.units = (int32_t)lpg_ceil_div(w->desc.k, lpg_stripe_k_of(w));
  s->frame.scale_groups = lpg_stripe_groups(w);
  s->group_zeros = center.per_group;
  s->zeros = lpg_has_shift(&center) || s->frame.scale_groups > 1;
  s->frame.shift = has_rest(&w->desc, &center);
  s->frame.factors = table_bytes(&w->desc); /* it lies at the beginning */
  s->frame.table = s->frame.factors + FACTORS_BYTES;
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++)
    s->scales += LPG_STRIPE_ROW_TILES * lpg_stripe_section_bytes(w, (lpg_section_id)id);
}

static int tile(const lpg_problem *problem, const lpg_device *device, int i, void *state) {
  stripe_state *s = state;
  lpg_stripe_plan *p = &s->frame;
  (void)device;
  if (i >= WORK_TILES || (s->zeros && work_tiles[i].tile_m < 64)) return LPG_NO_MORE;
  if (work_tiles[i].tile_m == LPG_STRIPE_SCALED_M && (problem->m <= MOST_UNSCALED || !may_scale(problem)))
    return LPG_HOLE;
  p->warps = LPG_STRIPE_WARPS;
  p->tile_m = work_tiles[i].tile_m;
  p->zeros = p->tile_m == LPG_STRIPE_SCALED_M ? s->group_zeros : s->zeros;
  p->at_once = work_tiles[i].at_once;
  p->n_tiles = (int32_t)lpg_ceil_div(problem->weights->desc.n, lpg_stripe_tile_n(p->warps));
  p->m_tiles = (int32_t)lpg_ceil_div(problem->m, p->tile_m);
  const int unit_k = lpg_stripe_k_of(problem->weights);
  const int row_tile = lpg_stripe_code_bytes(problem->weights->bits, unit_k);
  p->codes = p->tile_m * unit_k * 2;
  p->scales = p->codes + p->warps * LPG_STRIPE_ROW_TILES * row_tile;
  p->warp_scales = s->scales;
  const int tables = p->tile_m == LPG_STRIPE_SCALED_M ? 0 : p->warps * lpg_stripe_table_bytes(p->scale_groups);
  p->ring = lpg_round_up_to(p->table + tables, 128);
  p->sums_of_x = p->scales + p->warps * p->warp_scales;
  const int stage = p->sums_of_x + (p->shift ? p->scale_groups * p->tile_m * 4 : 0);
  const int sums = p->warps * lpg_sums_bytes(LPG_PASS_ROWS, LPG_STRIPE_ROW_TILES * LPG_TILE_ROWS);
  p->stage_bytes = lpg_round_up_to(stage > sums ? stage : sums, 128);
  return LPG_CANDIDATE;
}

/* How much longer units take than those of groups of 128 without zeros; of real zeros and minima in groups of 128 and
 * more it is a guess. Products are added to the totals for each scale group. Groups of 16, and shorter units, are taken
 * to cost as much for each time as groups of 32, which were measured. With 32 rows of X a warp has half the products
 * for the same weights. Shorter units take longer where all CTAs have the same rows of X (up to 64). Three CTAs of an
 * SM hide more than two, one hides less. */
static double slower_than_plain(const lpg_stripe_plan *p, int unit_k, double sms) {
  const double times = 128.0 / unit_k * p->scale_groups; /* that products are added in 128 k */
  const double added = 1.0 + (times - 1.0) / 3.0 * (p->scale_groups > 1 && p->shift ? 1.4 : 0.4);
  const double zeros = added * (p->scale_groups > 1 ? 1.0 : p->shift ? 2.0 : p->zeros ? 1.09 : 1.0);
  const double few = (p->tile_m == 32 ? 1.34 : 1.0) * (p->m_tiles == 1 && unit_k < 128 ? 1.35 : 1.0);
  const double sums = p->tile_m == LPG_STRIPE_SCALED_M ? 1.0 : zeros * few; /* scaled weights: one set of them */
  return sums * (p->ctas <= sms ? 1.6 : p->at_once > 2 ? 0.92 : 1.0);
}

/* Nanoseconds, fitted to 149 times of integers in groups of 128, most of drawn shapes, with and without scaled weights,
 * each as if the clock had been 1965 MHz (H200, 2026-11-29: bench/results/h200-stripe-scaled.txt). CTAs that share an
 * SM take turns; a whole work tile is stored while nothing is multiplied, and of a tile in parts a warp adds up one
 * part after the other. */
static double cost_of(const lpg_stripe_plan *p, const stripe_state *s) {
  enum { STORE_ROW_NS = 60, PART_NS = 400 };
  const lpg_rates *r = s->rates;
  const int scaled = p->tile_m == LPG_STRIPE_SCALED_M;
  const double multiply = 2.0 * s->unit_weights * p->tile_m / (1e3 * r->mma_f16 / r->sms);
  const double slower = slower_than_plain(p, s->unit_k, r->sms);
  const double unit = ((scaled ? 0.92 : 1.05) * multiply + (scaled ? 1.05 : 0.93) * s->dequantise) * slower;
  const double units = p->stripes.each + (p->stripes.more > 0), turns = ceil(p->ctas / r->sms);
  const int whole = p->stripes.more == 0 && p->stripes.each % p->units == 0;
  const double parts = p->ctas / ((double)p->n_tiles * p->m_tiles); /* of a work tile */
  const double partials =
      whole ? 0.0 : 3000.0 + PART_NS * parts + (double)p->ctas * (double)lpg_stripe_partial(p) * 8.0 / r->l2;
  const double stores = STORE_ROW_NS * p->tile_m * floor(units / p->units) * (turns > 1.0 ? 1.5 : 1.0);
  return 2500.0 + fmax(turns * units * unit, s->read) + partials + stores;
}

/* First all CTAs that run at once, then so many that each work tile has 1, 2 ... parts and no more. */
static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  const stripe_state *s = state;
  lpg_stripe_plan *p = plan;
  const int32_t sms = device->sms > 0 ? device->sms : 1, most = sms * s->frame.at_once;
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
  const int64_t all = device->shared_memory + RESERVED_SHARED, own = all / p->at_once - RESERVED_SHARED;
  (void)state;
  const int64_t stages = (own - p->ring) / p->stage_bytes;
  p->stages = (int32_t)(stages < LPG_STRIPE_MOST_STAGES ? stages : LPG_STRIPE_MOST_STAGES);
  p->shared_bytes = p->ring + p->stages * p->stage_bytes;
  return stages >= LEAST_STAGES;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_stripe_plan *p = plan;
  (void)self;
  launch->tile_n = lpg_stripe_tile_n(p->warps);
  launch->tile_m = p->tile_m;
  launch->clusters = p->ctas;
  launch->at_once = p->at_once * (device->sms > 0 ? device->sms : 1);
  launch->work_tiles = (int64_t)p->n_tiles * p->m_tiles;
  launch->threads = 32 * p->warps;
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
