/* The planner of gemv: what it refuses, the ways to cut a problem, what they cost. */
#include "gemv_plan.h"

#include <math.h>

#include "../operand/center.h"
#include "../operand/limits.h"
#include "../plan/rates.h"

typedef struct gemv_state {
  lpg_gemv_kind kind;
  lpg_gemv_plan frame; /* of the split-K at hand */
  int rounds, step;    /* the candidate at hand */
  int raw_bytes;       /* of a row of X whose columns the kernel may gather; else 0 */
  double launch;       /* nanoseconds of a launch that gathers them */
  int64_t m;
  const lpg_rates *rates;
} gemv_state;

static lpg_gemv_kind kind_of(const lpg_planner *self, const lpg_problem *problem) {
  const lpg_center center = lpg_center_of(&problem->weights->desc);
  return lpg_gemv_kind_of(problem->weights, self->tile_m, lpg_has_shift(&center), center.per_group);
}

/* ---- candidates ---- */

enum { MOST_RAW = 1 << 20 }; /* columns of X of which one row can still be imagined in shared memory */

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  gemv_state *s = state;
  s->rates = lpgemm_i_rates_of(device);
  s->kind = kind_of(self, problem);
  s->m = problem->m;
  s->launch = 1e3 * lpgemm_i_gather_us(problem, device);
  s->raw_bytes = 0;
  const int may = lpg_gemv_may_gather(self->tile_m) && lpg_bytes(problem->x_type) == 2;
  if (may && problem->weights->desc.columns && problem->weights->x_k <= MOST_RAW) {
    s->raw_bytes = (int)lpg_round_up(2 * problem->weights->x_k, 16);
  }
}

/* K in 2^i parts, one for each CTA of a cluster, with so many warps. */
static int split(const lpg_gemv_kind *kind, const lpg_packed *weights, int64_t m, const lpg_device *device, int i,
                 int warps, lpg_gemv_plan *p) {
  const int32_t ctas = i > 0 ? device->clusters[1 << i] : device->sms, most = ctas * (kind->warps / warps);
  const lpg_gemv_plan none = {0};
  *p = none;
  p->blocks = (int32_t)((weights->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  p->super_tiles = (int32_t)((weights->row_tiles + kind->row_tiles - 1) / kind->row_tiles);
  p->split_k = 1 << i;
  p->warps = warps;
  p->clusters = most < p->super_tiles ? most : p->super_tiles;
  if (p->clusters <= 0 || (i > 0 && p->split_k > p->blocks)) return 0;
  p->k_part = lpg_partition_of(p->blocks, p->split_k);
  p->n_part = lpg_partition_of(p->super_tiles, p->clusters);
  p->x_rows = (int32_t)(m < kind->tile_m ? m : kind->tile_m);
  return 1;
}

/* Whether CTAs of half the warps, two on an SM, are worth a try. With more rows X lies twice in an SM, as do codebooks'
 * tables, half of 16 warps is too few, and before 9.0 no kernel starts early. */
static int may_halve(const lpg_problem *problem, const lpg_gemv_kind *kind, const lpg_device *device) {
  return problem->m == 1 && kind->has_half && device->clusters[1] > 0;
}

/* Each split-K, then halves without it. Where half of the SMs are idle, the next call's CTAs have room already. */
static int tile(const lpg_problem *problem, const lpg_device *device, int i, void *state) {
  gemv_state *s = state;
  const int halves = i == LPG_CLUSTER_SIZES, log2 = halves ? 0 : i;
  if (i > LPG_CLUSTER_SIZES || (halves && !may_halve(problem, &s->kind, device))) return LPG_NO_MORE;
  if (!split(&s->kind, problem->weights, s->m, device, log2, s->kind.warps >> halves, &s->frame)) return LPG_HOLE;
  return halves && 2 * s->frame.clusters <= device->sms ? LPG_HOLE : LPG_CANDIDATE;
}

/* Phases of candidate i: 1, 2, 4 and so on up to one for each k block; 0: there is none. */
static int phases_at(int blocks, int i) {
  if (i > 0 && 1 << (i - 1) >= blocks) return 0;
  return i == 0 || 1 << i < blocks ? 1 << i : blocks;
}

static void divide(lpg_gemv_plan *p, const lpg_gemv_kind *kind, int rounds, int phases) {
  p->round_tiles = (lpg_gemv_cluster_tiles(p) + rounds - 1) / rounds;
  p->phase_blocks = (lpg_gemv_part_blocks(p) + phases - 1) / phases;
  p->slot_bytes = kind->row_tiles * LPG_TILE_ROWS * kind->tile_m * 4;
}

/* Nanoseconds that halves take less: each begins where one of the kernel ahead has ended, and its weights are on their
 * way while others still run (token suites with and without other kernels between, H200, 2026-11-27). */
static double half_gain(const lpg_gemv_plan *p, const lpg_gemv_kind *kind) {
  return p->warps < kind->warps ? 800.0 : 0.0;
}

/* Nanoseconds that the plan may take: the slowest CTA reads its weights at its share of the memory, after it has loaded
 * the first phase of X from L2, and in the end adds up sums. */
static double cost_of(const lpg_gemv_plan *p, const lpg_gemv_kind *kind, const lpg_rates *rates) {
  const int tiles = lpg_gemv_cluster_tiles(p), blocks = lpg_gemv_part_blocks(p);
  const int rounds = (tiles + p->round_tiles - 1) / p->round_tiles;
  const int phases = p->phase_blocks > 0 ? (blocks + p->phase_blocks - 1) / p->phase_blocks : 1;
  const int units = p->round_tiles * (p->phase_blocks + !p->phase_blocks), most = (units + p->warps - 1) / p->warps;
  const double uneven = (double)most * p->warps / units;
  const double rate = lpg_dram_rate(rates) * p->warps / kind->warps; /* of a CTA */
  const double weights = (double)tiles * blocks * kind->block_bytes / rate * (0.5 + 0.5 * uneven);
  const double sums = (double)tiles * p->slot_bytes * (0.15 / 4) / (p->split_k > 1 ? 1 : 2);
  const double row = 512.0 * p->x_rows / 40.0, later = row * blocks * (phases > 1 ? rounds : 1) * 0.3;
  return weights + row * p->phase_blocks * 0.7 + later + sums + rounds * (p->split_k > 1 ? 900.0 : 400.0) +
         (rounds * phases - 1) * 700.0 - half_gain(p, kind);
}

/* The same for gathering the columns of X in the kernel: rows come to shared memory whole; there a thread reads two
 * elements, with some conflicts of banks, for a word that it writes, 4096 columns in 0.33 us. From counting; not
 * measured. */
static double gather_cost(const lpg_gemv_plan *p, int raw_bytes) {
  return p->x_rows * (raw_bytes / 40.0 * 0.7 + 0.08 * LPG_BLOCK_K * lpg_gemv_part_blocks(p) + 60.0);
}

static int place(const lpg_gemv_kind *kind, const lpg_device *device, lpg_gemv_plan *p);

/* Whether X is gathered in the kernel: where it comes in one phase, there is room, and a launch would take longer. All
 * passes do it, the launch is one. */
static double gather(const gemv_state *s, const lpg_device *device, lpg_gemv_plan *p) {
  const double cost = gather_cost(p, s->raw_bytes);
  const double passes = ceil((double)s->m / s->kind.tile_m);
  p->raw_bytes = p->phase_blocks == lpg_gemv_part_blocks(p) && passes * cost < s->launch ? s->raw_bytes : 0;
  if (p->raw_bytes > 0 && !place(&s->kind, device, p)) p->raw_bytes = 0;
  return p->raw_bytes > 0 ? cost : s->launch / passes;
}

/* One round in all numbers of phases, then two; more, each in all phases, are for matrices of millions of rows, where
 * nothing else fits. */
static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  gemv_state *s = state;
  lpg_gemv_plan *p = plan;
  const int blocks = lpg_gemv_part_blocks(&s->frame);
  (void)problem;
  s->step = i == 0 ? 0 : s->step + 1;
  if (i == 0) s->rounds = 1;
  if (!phases_at(blocks, s->step)) s->rounds++, s->step = 0;
  if (s->rounds > lpg_gemv_cluster_tiles(&s->frame) || (s->rounds > 2 && least < HUGE_VAL)) return LPG_NO_MORE;
  *p = s->frame;
  divide(p, &s->kind, s->rounds, phases_at(blocks, s->step));
  *ns = cost_of(p, &s->kind, s->rates);
  if (s->raw_bytes > 0) *ns += gather(s, device, p);
  return LPG_CANDIDATE;
}

/* Two CTAs of half the warps share an SM: each has half of its shared memory, with what the GPU keeps of each. */
static int place(const lpg_gemv_kind *kind, const lpg_device *device, lpg_gemv_plan *p) {
  enum { KEPT = 1024 };
  const int64_t all = device->shared_memory, most = p->warps < kind->warps ? (all + KEPT) / 2 - KEPT : all;
  const int tiles = lpg_gemv_cluster_tiles(p), blocks = lpg_gemv_part_blocks(p);
  p->scale_table_bytes = kind->scale_table_bytes;
  p->warp_bytes = kind->scale_table_bytes + kind->raw_bytes;
  const int places = p->phase_blocks < blocks ? 2 : 1;
  const int peer_areas = p->split_k > 1 ? (p->round_tiles < tiles ? 2 : 1) * p->split_k : 0;
  p->x_stride = p->phase_blocks * LPG_BLOCK_K * 2 + 16; /* 16: rows begin in different banks */
  const int64_t scale_groups = (int64_t)p->phase_blocks * LPG_BLOCK_K / kind->scale_group_k;
  const int64_t sums = kind->has_sums ? scale_groups * kind->tile_m * 4 : 0;
  const int64_t x_place = (int64_t)p->x_rows * p->x_stride;
  const int64_t slots = (int64_t)(p->round_tiles + p->warps - 1) * p->slot_bytes;
  const int64_t peers = (p->round_tiles + p->split_k - 1) / p->split_k * (int64_t)p->slot_bytes;
  const int64_t own = (int64_t)p->warps * p->warp_bytes;
  const int64_t order = p->raw_bytes > 0 ? (int64_t)blocks * LPG_BLOCK_K * 4 : 0;
  const int64_t raw = (int64_t)p->raw_bytes * (p->x_rows > 1 ? 2 : 1);
  if (kind->table_bytes + places * x_place + sums + slots + peer_areas * peers + own + order + raw > most) {
    return 0;
  }
  p->x = kind->table_bytes;
  p->x_place = (int)x_place;
  p->sums = p->x + places * p->x_place;
  p->slots = p->sums + (int)sums;
  p->peers = p->slots + (int)slots;
  p->peer_bytes = (int)peers;
  p->warp = p->peers + peer_areas * (int)peers;
  p->order = p->warp + (int)own;
  p->raw = p->order + (int)order;
  p->shared_bytes = p->raw + (int)raw;
  return 1;
}

static int lay_out(const lpg_device *device, const void *state, void *plan) {
  return place(&((const gemv_state *)state)->kind, device, plan);
}

/* ---- refusals ---- */

/* Without split-K, in as many rounds and phases as there can be: what needs the least shared memory. */
static int fits(const lpg_gemv_kind *kind, const lpg_packed *weights, int64_t m, const lpg_device *device) {
  lpg_gemv_plan p;
  if (!split(kind, weights, m, device, 0, kind->warps, &p)) return 0;
  divide(&p, kind, lpg_gemv_cluster_tiles(&p), p.blocks > 0 ? p.blocks : 1);
  return place(kind, device, &p);
}

static const char no_plan[] = "the GPU has too little shared memory for it";

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpg_gemv_kind kind = kind_of(self, problem);
  const char *reason = lpgemm_i_dequantisers_refuse(problem);
  if (reason || problem->weights->row_tiles == 0) return reason;
  return fits(&kind, problem->weights, self->tile_m, device) ? NULL : no_plan;
}

/* ---- the time of a call ----
 *
 * Fitted to the suite sweep and to bench/results/h200-decode.json (H200, 2026-11-22; every type, 2048 x 2048 to 57344 x
 * 8192, m = 1 to 16 a pass). A pass starts in some microseconds, more of them with more rows; of each weight an SM
 * reads the bytes or dequantises the code, which takes longer counts, and behind that the products with the rows of X
 * are hidden in part. */
enum { MULTIPLY = 760000 }; /* products of an SM, a microsecond */

/* Weights that an SM dequantises in a microsecond; integers of more than 4 bits are read more slowly than that. */
static double dequant_rate(lpgemm_dtype_t type) {
  const int bits = lpg_bits(type);
  if (lpg_kind(type) == LPGEMM_KIND_FLOAT) {
    return bits <= 4 ? 58000.0 : bits <= 6 ? 44000.0 : bits == 7 ? 36000.0 : 29500.0;
  }
  if (lpg_kind(type) == LPGEMM_KIND_CODEBOOK && bits > 1) return 49500.0;
  return bits == 1 ? 88000.0 : bits == 2 ? 79000.0 : bits == 3 ? 66000.0 : 62000.0;
}

static int has_group_shift(const lpg_packed *weights) {
  return weights->desc.zero == LPGEMM_ZERO_PER_GROUP || weights->desc.zero == LPGEMM_ZERO_MINIMUM;
}

/* Whether scales of two levels have a kernel of their own. More passes than one were not timed: they count as if there
 * were none. */
static int has_levels(const lpg_packed *weights, double passes) {
  const lpg_center center = lpg_center_of(&weights->desc);
  return passes <= 1.0 && lpg_gemv_codes_of(weights, lpg_has_shift(&center)) != 0;
}

/* How much longer dequantising takes for scales and zeros: small groups, zeros of small groups, two levels (levels: by
 * a kernel of their own, fitted to bench/results/h200-k-quants.json, 2026-11-26). */
static double slower_by_scales(const lpg_packed *weights, int levels) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int steps = lpg_gemv_scale_steps(weights);
  if (levels) return !has_group_shift(weights) ? 1.1 : steps == 1 ? 1.9 : weights->bits > 4 ? 1.6 : 1.3;
  const double groups = steps == 1 ? 0.45 : steps == 2 ? 0.18 : 0.0;
  const double zeros = !has_group_shift(weights) || steps > 2 ? 0.0 : d->super_zero_type ? 0.25 : 0.7;
  return 1.0 + groups + zeros + (d->super_scale_type ? 0.6 : 0.0);
}

/* Whether zeros of large groups are bytes: code of their own converts them. */
static int has_byte_zeros(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  return d->zero == LPGEMM_ZERO_PER_GROUP && lpg_is_integer_kind(d->zero_type) && lpg_gemv_scale_steps(weights) > 2;
}

/* Microseconds of a pass of so many rows, beside its weights: the same in the kernels for 8 rows and for 16, since in
 * steps of models those for 16 are no faster with 4 rows (bench/results/h200-gemm-tall.txt, section 7; byte zeros: 18
 * times with 8 and 16 rows; one row of integers of 4 and 8 bits: 12 times; H200, 2026-11-29:
 * bench/results/h200-gemm-warps.txt). */
static double start_of(const lpg_problem *problem, double pass_rows, int levels) {
  const double filled = (pass_rows - 1.0) / 3.2;
  const lpgemm_dtype_t type = problem->weights->desc.type;
  const int one_of_integers = problem->m == 1 && lpg_is_integer_kind(type) && lpg_bits(type) > 2;
  return (one_of_integers ? 3.8 : 4.4) + 1.1 * fmin(1.0, filled) +
         (lpg_bytes(problem->x_type) == 1 ? 0.1 * pass_rows : 0.0) +
         (!has_group_shift(problem->weights)           ? 0.0
          : levels || has_byte_zeros(problem->weights) ? 1.0
                                                       : 2.0);
}

/* How much longer weights take: bipolar ones, for which a product more is added up, and where rows are few and long, in
 * parts of K that have sums to add (60 random problems of them, H200, 2026-11-23). */
static double slower_by_kind(const lpgemm_weight_desc_t *d, int tile_m) {
  const double bipolar = lpg_kind(d->type) != LPGEMM_KIND_BIPOLAR ? 1.0 : tile_m > 8 ? 1.45 : 1.25;
  const double long_rows = log2(fmax(1.0, (double)d->k) / (8.0 * fmax(1.0, (double)d->n)));
  return bipolar * (1.0 + 0.08 * fmax(0.0, long_rows));
}

static double estimate(const lpg_problem *problem, const lpg_device *device, int tile_m) {
  const lpg_packed *w = problem->weights;
  const double speed = tile_m > 8 ? 0.9 : 1.0; /* at which weights come, of that with 8 rows */
  const double sms = device->sms > 0 ? device->sms : 1.0, m = (double)problem->m, passes = ceil(m / tile_m);
  const double weights = (double)w->desc.n * (double)w->desc.k / sms;
  const double read = (double)w->total_bytes / sms / (1000.0 * lpg_dram_rate(lpgemm_i_rates_of(device)));
  const double dequantise = weights / (dequant_rate(w->desc.type) * lpgemm_i_alu_speed(device));
  const int levels = has_levels(w, passes);
  const double slower = slower_by_scales(w, levels), slowest = read > dequantise * slower ? read : dequantise * slower;
  const double by_sums = !has_group_shift(w) || levels ? 1.0 : has_byte_zeros(w) ? 1.05 : 1.2;
  const double both = passes * slowest * slower_by_kind(&w->desc, tile_m) * by_sums / speed;
  return passes * start_of(problem, passes > 0 ? m / passes : 1.0, levels) +
         hypot(both, m * weights / (MULTIPLY * lpgemm_i_mma_speed(device)));
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_gemv_kind kind = kind_of(self, problem);
  const lpg_gemv_plan *p = plan;
  (void)ns;
  launch->tile_n = kind.row_tiles * LPG_TILE_ROWS;
  launch->tile_m = self->tile_m;
  launch->split_k = p->split_k;
  launch->clusters = p->clusters;
  launch->work_tiles = p->super_tiles;
  launch->passes = (int32_t)lpg_ceil_div(problem->m, self->tile_m);
  launch->threads = 32 * p->warps;
  if (p->warps < kind.warps) launch->at_once = 2 * device->sms;
  launch->shared_bytes = p->shared_bytes;
  launch->gathers = p->raw_bytes > 0;
  launch->us = estimate(problem, device, self->tile_m) - 1e-3 * half_gain(p, &kind);
  if (launch->gathers) launch->us += 1e-3 * gather_cost(p, p->raw_bytes) * launch->passes;
}

#define PLANNER(rows)                                                                      \
  const lpg_planner lpgemm_i_gemv_##rows##_planner = {.refuses = refuses,                  \
                                                      .begin = begin,                      \
                                                      .tile = tile,                        \
                                                      .cut = cut,                          \
                                                      .lay_out = lay_out,                  \
                                                      .finish = finish,                    \
                                                      .no_plan = no_plan,                  \
                                                      .state_bytes = sizeof(gemv_state),   \
                                                      .plan_bytes = sizeof(lpg_gemv_plan), \
                                                      .mma = LPG_MMA_SYNC_F16,             \
                                                      .dequantises = LPG_DEQUANT_PER_TILE, \
                                                      .tile_m = rows};
PLANNER(8)
PLANNER(16)
