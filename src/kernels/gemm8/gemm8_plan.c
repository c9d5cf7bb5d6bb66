/* The planner of gemm8: what it refuses, work tiles and split-K, what they cost. */
#include "gemm8_plan.h"

#include <math.h>

#include "../operand/x_copy.h"
#include "../plan/rates.h"

/* ---- refusals ---- */

/* The largest magnitude of a weight, whatever the zero of its row is: from 0 to 2^bits where rows have one each. */
static int64_t largest_weight(const lpgemm_weight_desc_t *d) {
  const int64_t low = lpg_integer_offset(d->type), high = low + (1 << lpg_bits(d->type)) - 1;
  const int64_t constant = d->zero == LPGEMM_ZERO_CONSTANT ? (int64_t)d->zero_constant : 0;
  const int64_t most = d->zero == LPGEMM_ZERO_PER_GROUP ? (int64_t)1 << lpg_bits(d->type) : constant;
  const int64_t above = high - constant, below = most - low;
  return above > below ? above : below;
}

/* NULL, or why scales and zeros that come with the stages are not for them. */
static const char *refuses_groups(const lpg_problem *problem, lpg_gemm8_mode mode) {
  const lpg_packed *packed = problem->weights;
  const lpgemm_weight_desc_t *d = &packed->desc;
  if (d->scale_type != LPGEMM_F16 && d->scale_type != LPGEMM_BF16)
    return "it takes scales of groups as fp16 and bf16 only";
  if (packed->group.count > 1 &&
      (packed->group.k % LPG_GEMM8_X_K != 0 || (packed->group.k & (packed->group.k - 1)) != 0)) {
    return "it takes groups of 128, 256, 512 ... columns and whole rows only";
  }
  if (mode.by_e4m3 || mode.become == LPG_GEMM8_CENTERED) return NULL;
  const int bytes = d->zero == LPGEMM_ZERO_PER_GROUP
                        ? d->zero_type == LPGEMM_U8 && lpg_kind(d->type) == LPGEMM_KIND_UINT
                        : lpg_gemm8_zero(d) >= 0 && lpg_gemm8_zero(d) <= 128;
  return bytes && packed->bits < 8 ? NULL : "the weights of groups less their zeros are no signed bytes";
}

/* NULL, or why the weights less their zeros are not for e4m3. */
static const char *refuses_e4m3(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  static const char *const zeros = "with e4m3 it takes zeros of unsigned weights from 0 to 16 only";
  if (lpg_kind(d->type) == LPGEMM_KIND_FLOAT) {
    if (d->zero != LPGEMM_ZERO_NONE) return "it takes zeros of integer weights only";
    const int fits = lpg_exponent_bits(d->type) <= 4 && lpg_low_field(d->type) <= 3;
    return fits && (weights->bits < 8 || d->type == LPGEMM_E4M3) ? NULL : "the weights' values are not exact in e4m3";
  }
  if (weights->bits > 4) return "the weights' values are not exact in e4m3";
  if (d->zero == LPGEMM_ZERO_PER_GROUP) {
    return d->zero_type == LPGEMM_U8 && lpg_kind(d->type) == LPGEMM_KIND_UINT ? NULL : zeros;
  }
  return lpg_gemm8_zero(d) >= 0 && lpg_gemm8_zero(d) <= 16 ? NULL : zeros;
}

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *packed = problem->weights;
  const lpgemm_weight_desc_t *d = &packed->desc;
  (void)self, (void)device;
  if (d->k == 0 || d->n == 0 || problem->m == 0) return "there is nothing to multiply";
  if (d->zero == LPGEMM_ZERO_CONSTANT &&
      !(fabsf(d->zero_constant) <= 65536.0f && floorf(d->zero_constant) == d->zero_constant)) {
    return "the weights' zeros are no integers";
  }
  const lpg_gemm8_mode mode = lpg_gemm8_mode_of(packed, problem->x_type);
  if (!mode.by_e4m3 && !lpg_x_is_int8(problem->x_type)) return "the activations' codes are not the numbers as int8";
  if (lpg_kind(d->type) == LPGEMM_KIND_BIPOLAR) return "it takes no bipolar weights";
  if (d->zero == LPGEMM_ZERO_MINIMUM || (d->zero == LPGEMM_ZERO_PER_GROUP && lpg_is_real(d->zero_type))) {
    return "the weights' zeros are no integers";
  }
  if (lpg_gemm8_promotes(mode) && problem->batch_invariant) return "its sums may depend on the number of rows";
  const char *reason = mode.by_e4m3 ? refuses_e4m3(packed) : NULL;
  if (!reason && mode.grouped) reason = refuses_groups(problem, mode);
  if (reason) return reason;
  if (packed->n_padded > INT32_MAX / 2 || packed->k_padded > INT32_MAX / 4 || problem->m > INT32_MAX / 2) {
    return "it takes no matrix as large as this";
  }
  if (!lpg_gemm8_promotes(mode) && d->k > INT32_MAX / (128 * largest_weight(d)))
    return "sums of so many columns may not be int32";
  return NULL;
}

/* ---- candidates ---- */

static int stages_in(const lpg_gemm8_plan *p, int64_t room) {
  const int64_t stages = room / (p->x_bytes + p->w_bytes + p->scales_bytes);
  return stages < LPG_GEMM8_MOST_STAGES ? (int)stages : LPG_GEMM8_MOST_STAGES;
}

/* Stages that must have room beside the receive buffers of split-K's exchange. */
enum { LEAST_STAGES_APART = 3 };

/* Lays out shared memory; 0 if it does not fit. */
static int place(lpg_gemm8_plan *p, lpg_gemm8_tile tile, int64_t shared_memory) {
  const int tile_n = lpg_gemm8_tile_n(tile.row_tiles), part_bytes = lpg_sums_bytes(tile.tile_m, tile_n);
  const int sent_bytes = lpg_exchange_bytes(tile.tile_m, tile_n, p->split_k, 1, LPG_GEMM8_WARPS);
  const int sums_bytes = part_bytes > sent_bytes ? part_bytes : sent_bytes;
  p->received = LPG_GEMM8_BARRIER_BYTES;
  p->factors = p->received + 16;
  p->offsets = p->factors + LPG_GEMM8_TILE_N * 4;
  p->x_sums = p->offsets + LPG_GEMM8_TILE_N * 4;
  p->sums = p->x_sums + (p->direct ? LPG_GEMM8_TILE_M * 4 : 0);
  p->x_ring = p->sums;
  /* a warp's sums of a few rows of X; those of parts lie behind the stages, or where these were */
  if (p->split_k == 1) p->x_ring += LPG_GEMM8_WARPS * lpg_sums_bytes(LPG_PASS_ROWS, tile.row_tiles * LPG_TILE_ROWS);
  p->x_ring = lpg_round_up_to(p->x_ring, 1024); /* swizzled rows */
  const int64_t room = shared_memory - p->x_ring;
  const int beside = stages_in(p, room - sums_bytes);
  p->apart = p->split_k > 1 && beside >= LEAST_STAGES_APART;
  p->stages = p->apart ? beside : stages_in(p, room);
  if (p->stages < (p->direct ? LPG_GEMM8_DIRECT_AHEAD + 1 : 2)) return 0;
  p->w_ring = p->x_ring + p->stages * p->x_bytes;
  p->scales_ring = p->w_ring + p->stages * p->w_bytes;
  p->shared_bytes = p->scales_ring + p->stages * p->scales_bytes;
  p->exchanges = 0;
  if (p->split_k > 1) {
    p->sums = p->apart ? p->shared_bytes : p->x_ring;
    if (p->apart) p->shared_bytes = p->sums + sums_bytes;
    const int end = p->apart ? p->shared_bytes : p->scales_ring;
    if (end < p->sums + part_bytes) return 0;
    p->exchanges = end >= p->sums + sent_bytes;
  }
  return 1;
}

/* Nanoseconds of a stage: at the speed of the tensor cores, and of reading its weights while all SMs read (measured on
 * the H200, docs/log/2026-11.md). */
typedef struct gemm8_stage {
  double work, read;
} gemm8_stage;

static gemm8_stage stage_of(lpg_gemm8_tile tile, lpg_gemm8_mode mode, int tile_m, const lpg_device *device) {
  const int rows = lpg_gemm8_tile_n(tile.row_tiles);
  const double columns = lpg_gemm8_stage_k(mode.bits, tile.tile_m, tile.row_tiles) / 128.0, share = rows / 256.0;
  const double work =
      lpg_gemm8_promotes(mode) ? 130.0 + share * (140.0 + 3.85 * tile_m) : 30.0 + share * (220.0 + 2.9 * tile_m);
  const gemm8_stage stage = {columns * work / lpgemm_i_alu_speed(device),
                             columns * rows * 16.0 * mode.bits / lpg_dram_rate(lpgemm_i_rates_of(device))};
  return stage;
}

/* Nanoseconds of a stage, and of outputs, whole or added up over parts of K; and of work tiles of half the rows of X.
 */
typedef struct gemm8_costs {
  gemm8_stage stage, half_stage;
  double store, add, exchange, half_store; /* exchange: in one round of clusters below eight */
  double x_bytes, image;                   /* of X in a stage; of a call where X is not read directly, its image */
  double sms;
} gemm8_costs;

/* Where X is read directly: bytes a nanosecond that a CTA's producer warps put in order, at most (seven calls had 21 to
 * 29), and by how much that slows down a stage in which they keep up: so many bytes cost a nanosecond (set by hand for
 * four calls). H200, 2026-11-28: bench/results/h200-gemm8-direct.txt, section 1. */
enum { DIRECT_BYTES = 24, DIRECT_BESIDE_BYTES = 80 };

/* Nanoseconds of making the image of X, and of what a second kernel costs. */
static double image_ns(const lpg_problem *problem, const lpg_device *device) {
  const double sms = device->sms > 0 ? device->sms : 1.0, speed = lpgemm_i_alu_speed(device);
  return 1300.0 + (double)problem->m * (double)problem->weights->desc.k / (sms * 12.0 * speed);
}

static gemm8_costs costs_of(const lpg_problem *problem, lpg_gemm8_tile tile, lpg_gemm8_mode mode,
                            const lpg_device *device) {
  const double share = lpg_gemm8_tile_n(tile.row_tiles) / 256.0, store = share * 13.0 * tile.tile_m;
  const gemm8_costs costs = {.stage = stage_of(tile, mode, tile.tile_m, device),
                             .half_stage = stage_of(tile, mode, tile.tile_m / 2, device),
                             .store = 800.0 + store,
                             .add = 1000.0 + share * (lpg_gemm8_promotes(mode) ? 60.0 : 45.0) * tile.tile_m,
                             .exchange = 900.0 + share * 26.0 * tile.tile_m,
                             .half_store = 800.0 + store / 2.0,
                             .x_bytes = tile.tile_m * lpg_gemm8_stage_k(mode.bits, tile.tile_m, tile.row_tiles),
                             .image = image_ns(problem, device),
                             .sms = device->sms > 0 ? device->sms : 1.0};
  return costs;
}

/* busy: which part of the SMs reads. */
static double stage_ns(gemm8_stage stage, double busy) { return fmax(stage.work, busy * stage.read); }

/* Nanoseconds that the plan may take: work tiles in turn. */
static double cost_of(const lpg_gemm8_plan *p, const gemm8_costs *costs) {
  const int rounds = (p->whole + p->clusters - 1) / p->clusters, halves = p->whole < p->n_tiles * p->m_tiles;
  const int stages = p->part.each + (p->part.more > 0);
  const double outputs = p->split_k == 1 ? costs->store : rounds > 1 || p->split_k == 8 ? costs->add : costs->exchange;
  const double busy = fmin(1.0, p->clusters * p->split_k / costs->sms);
  const double image = stage_ns(costs->stage, busy);
  const double direct = fmax(image + costs->x_bytes / DIRECT_BESIDE_BYTES, costs->x_bytes / DIRECT_BYTES);
  return rounds * (stages * (p->direct ? direct : image) + outputs) +
         halves * (stages * stage_ns(costs->half_stage, busy) + costs->half_store) + (p->direct ? 0.0 : costs->image) +
         1500.0;
}

/* What a plan with such work tiles has however they are cut; 0 if there are none of them. */
static int make_frame(const lpg_packed *weights, lpg_gemm8_mode mode, int64_t m, lpg_gemm8_tile tile,
                      lpg_gemm8_plan *p) {
  const lpg_gemm8_plan none = {0};
  const int stage_k = lpg_gemm8_stage_k(weights->bits, tile.tile_m, tile.row_tiles),
            rows = lpg_gemm8_tile_n(tile.row_tiles);
  *p = none;
  p->k_stages = (int32_t)((weights->desc.k + stage_k - 1) / stage_k);
  p->n_tiles = (int32_t)((weights->desc.n + rows - 1) / rows);
  p->m_tiles = (int32_t)((m + tile.tile_m - 1) / tile.tile_m);
  p->x_bytes = tile.tile_m * stage_k;
  p->w_bytes = rows * stage_k / 8 * weights->bits;
  p->scales_bytes = mode.grouped ? lpg_gemm8_scales_bytes(rows, stage_k) : 0;
  return lpg_gemm8_has_tile(lpg_gemm8_promotes(mode), mode.bits, tile.tile_m, tile.row_tiles) &&
         (int64_t)p->n_tiles * p->m_tiles <= INT32_MAX;
}

/* Cuts K into parts of K for clusters of so many blocks; 0 if it has no so many, or the device none that run at once.
 */
static int split(const lpg_device *device, lpg_gemm8_tile tile, int64_t m, int split_k_log2, lpg_gemm8_plan *p) {
  const int32_t most = split_k_log2 > 0 ? device->clusters[1 << split_k_log2] : device->sms;
  const int32_t tiles = p->n_tiles * p->m_tiles;
  p->split_k = 1 << split_k_log2;
  if (most <= 0 || p->split_k > p->k_stages) return 0;
  p->clusters = tiles < 1 ? 1 : tiles < most ? tiles : most;
  p->whole = p->split_k == 1 && lpg_gemm8_has_halves(tile.tile_m, tile.row_tiles)
                 ? lpg_whole_tiles(tiles, p->clusters, m, tile.tile_m)
                 : tiles;
  p->part = lpg_partition_of(p->k_stages, p->split_k);
  return 1;
}

static const lpg_gemm8_tile work_tiles[] = {
#define TILE(tile_m, row_tiles) {tile_m, row_tiles},
    LPG_GEMM8_TILES(TILE)
#undef TILE
};

typedef struct gemm8_state {
  lpg_gemm8_mode mode;
  int may_be_direct;    /* TMA's rules for rows of X, and the kernel finds what it needs of rows of W */
  lpg_gemm8_plan frame; /* of the work tile at hand, and its costs */
  gemm8_costs costs;
  int32_t tile;
} gemm8_state;

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  gemm8_state *s = state;
  (void)self, (void)device;
  s->mode = lpg_gemm8_mode_of(problem->weights, problem->x_type);
  s->may_be_direct = !problem->x_unaligned && problem->weights->desc.k % 16 == 0 &&
                     (s->mode.grouped || lpg_gemm8_finds_scales(&problem->weights->desc));
}

static int tile(const lpg_problem *problem, const lpg_device *device, int i, void *state) {
  gemm8_state *s = state;
  if (i >= (int)(sizeof work_tiles / sizeof work_tiles[0])) return LPG_NO_MORE;
  s->tile = i;
  s->costs = costs_of(problem, work_tiles[i], s->mode, device);
  return make_frame(problem->weights, s->mode, problem->m, work_tiles[i], &s->frame) ? LPG_CANDIDATE : LPG_HOLE;
}

static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  const gemm8_state *s = state;
  lpg_gemm8_planned *p = plan;
  (void)least;
  if (i >= 2 * LPG_CLUSTER_SIZES) return LPG_NO_MORE;
  p->plan = s->frame;
  p->tile = s->tile;
  if (!split(device, work_tiles[s->tile], problem->m, i / 2, &p->plan)) return LPG_HOLE;
  p->plan.direct = i % 2;
  if (p->plan.direct && (!s->may_be_direct || p->plan.n_tiles * p->plan.m_tiles > p->plan.clusters)) return LPG_HOLE;
  *ns = cost_of(&p->plan, &s->costs);
  return LPG_CANDIDATE;
}

static int lay_out(const lpg_device *device, const void *state, void *plan) {
  lpg_gemm8_planned *p = plan;
  (void)state;
  return place(&p->plan, work_tiles[p->tile], device->shared_memory);
}

/* ---- the time of a call ---- */

static double estimate(const lpg_problem *problem, const lpg_device *device, double ns) {
  return 1.6 + lpg_loose_outputs_us(problem, device) + ns / 1000.0;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_gemm8_planned *planned = plan;
  const lpg_gemm8_plan *p = &planned->plan;
  const lpg_gemm8_tile work_tile = work_tiles[planned->tile];
  (void)self;
  launch->tile_n = lpg_gemm8_tile_n(work_tile.row_tiles);
  launch->tile_m = work_tile.tile_m;
  launch->split_k = p->split_k;
  launch->clusters = p->clusters;
  launch->work_tiles = (int64_t)p->n_tiles * p->m_tiles;
  launch->threads = 32 * (LPG_GEMM8_WARPS + LPG_GEMM8_PRODUCER_WARPS);
  launch->shared_bytes = p->shared_bytes;
  launch->stages = p->stages;
  launch->mode = (int32_t)lpg_gemm8_mode_of(problem->weights, problem->x_type).grouped + 2 * p->direct;
  launch->us = estimate(problem, device, ns);
}

static size_t workspace(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self, (void)device;
  return (size_t)lpg_gemm8_workspace_of(problem->weights, problem->m).bytes;
}

static const char *const modes[] = {"row", "group", "row, X directly", "group, X directly"};
const lpg_planner lpgemm_i_gemm8_planner = {.refuses = refuses,
                                            .begin = begin,
                                            .tile = tile,
                                            .cut = cut,
                                            .lay_out = lay_out,
                                            .finish = finish,
                                            .workspace = workspace,
                                            .no_plan = "it does not fit shared memory",
                                            .modes = modes,
                                            .state_bytes = sizeof(gemm8_state),
                                            .plan_bytes = sizeof(lpg_gemm8_planned),
                                            .mma = LPG_WGMMA_8,
                                            .dequantises = LPG_DEQUANT_PER_TILE};
