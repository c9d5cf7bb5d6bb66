/* The planner of gemm: work tiles, split-K, multicast of X. */
#include "gemm_plan.h"

#include <math.h>

#include "../operand/expand.h"
#include "../operand/limits.h"
#include "../operand/x_copy.h"
#include "gemm_cost.h"
#include "gemm_mode.h"

/* ---- where things lie in shared memory ---- */

/* Finds how many stages there are room for. A stage of weights is for several of X where tiles are long. One of X that
 * is free must mean that the weights' next, and the slot's, are free as well: see the bounds, and that teams go through
 * the stages in turn, a k block each. */
static void fill_room(lpg_gemm_plan *p, const lpg_gemm_kind *kind, int64_t room) {
  const int each = lpg_gemm_stage_steps(kind->bits, kind->stage_k) * LPG_STEP_K / kind->stage_k;
  const int block_stages = LPG_BLOCK_K / kind->stage_k, others = (kind->tile.teams - 1) * block_stages; /* of others */
  const int most = lpg_gemm_most_blocks(kind->tile.tile_m) * block_stages;
  const int stage_bytes = kind->x_stage_bytes + (lpg_gemm_is_prepared(kind->mode) ? kind->slot_bytes : 0);
  p->x_stages = 0;
  for (int32_t w_stages = 2; w_stages <= most; w_stages++) {
    const int64_t left = (room - (int64_t)w_stages * kind->w_stage_bytes) / stage_bytes;
    const int32_t bound = each == 1 ? w_stages : 1 + each * (w_stages - 1) - others;
    int32_t x_stages = left < bound ? (int32_t)left : bound;
    if (x_stages > most) x_stages = most;
    if (x_stages <= p->x_stages) continue;
    p->x_stages = x_stages;
    p->w_stages = w_stages;
  }
}

/* Blocks of columns that stages must have room for beside the receive buffers: the more stages, the better they hide
 * what memory takes. */
enum { LEAST_BLOCKS_APART = 2 };

/* Stages that must have room beside a work tile's outputs: four in place of five cost 1 % (H200, 2026-11-28), and fewer
 * were not timed. */
enum { LEAST_STAGES_BESIDE = 4 };

/* Bytes of a work tile's outputs, if TMA may store them: where a cluster has several work tiles, since what is won is
 * that the next one is multiplied meanwhile. */
static int output_bytes(const lpg_gemm_plan *p, const lpg_gemm_kind *kind, int takes_experts, int sends) {
  if (!sends || takes_experts || p->at_once > 1 || !lpg_gemm_streams(kind->tile.tile_m, kind->tile.teams)) return 0;
  return p->n_tiles * p->m_tiles > p->clusters ? kind->tile_n * p->x_rows * 2 : 0;
}

/* Lays out shared memory; 0 if it does not fit. sends: outputs are the common case (store_fast.cuh), so teams may
 * exchange sums. outputs: bytes of them that TMA stores; 0: threads do. */
static int place_with(lpg_gemm_plan *p, const lpg_gemm_kind *kind, int experts, int paired, int sends, int outputs,
                      int64_t shared_memory) {
  const int block_stages = LPG_BLOCK_K / kind->stage_k, others = (kind->tile.teams - 1) * block_stages; /* of others */
  const int prepared = lpg_gemm_is_prepared(kind->mode);
  p->received = LPG_GEMM_BARRIER_BYTES;
  p->table = p->received + 16;
  p->factors = p->table + kind->table_bytes;
  p->experts = p->factors + 2 * LPG_GEMM_TILE_N * 4 + (paired ? LPG_BIASES_BEHIND * 4 : 0);
  p->sums = p->experts + lpg_expert_rows_bytes(experts);
  p->scales = p->sums;
  /* a warp's sums of a few rows of X; parts lie behind the stages, or where these were */
  if (p->at_once == 1 && outputs == 0) {
    p->scales += kind->tile.teams * kind->tile.warps * lpg_sums_bytes(LPG_PASS_ROWS, LPG_TILE_ROWS);
  }
  const int most = lpg_gemm_most_blocks(kind->tile.tile_m) * block_stages;
  p->slots = 1 + kind->tile.teams + (most - 2) / block_stages;                                 /* as below */
  p->x_ring = lpg_round_up_to(p->scales + (prepared ? 0 : p->slots * kind->slot_bytes), 1024); /* swizzled rows */
  p->boxes = outputs > 0;
  if (p->boxes) { /* lines are swizzled as well */
    p->sums = p->x_ring;
    p->x_ring += outputs;
  }
  const int64_t room = shared_memory - p->x_ring;
  const int part_bytes = kind->tile.teams * p->runs * lpg_sums_bytes(kind->tile.tile_m, kind->tile_n);
  const int sent_bytes =
      lpg_exchange_bytes(kind->tile.tile_m, kind->tile_n, p->at_once, kind->tile.teams, kind->tile.warps);
  const int sums_bytes = part_bytes > sent_bytes ? part_bytes : sent_bytes;
  p->apart = 0;
  if (p->at_once > 1 && p->runs == 1 && sends) {
    fill_room(p, kind, room - sums_bytes);
    p->apart = p->x_stages >= others + LEAST_BLOCKS_APART * block_stages;
  }
  if (!p->apart) fill_room(p, kind, room);
  /* A producer warp brings one stage of each block; with fewer, or where what it sees release is of two teams in
   * turn, it could take a stage's next turn but one for its next. So could a consumer warp: see wait_stage(). */
  if (p->x_stages < others + block_stages) return 0;
  p->w_ring = p->x_ring + p->x_stages * kind->x_stage_bytes;
  p->shared_bytes = p->w_ring + p->w_stages * kind->w_stage_bytes;
  if (prepared) { /* a slot belongs to a stage of X */
    p->slots = p->x_stages;
    p->scales = p->shared_bytes;
    p->shared_bytes += p->slots * kind->slot_bytes;
  }
  p->exchanges = 0;
  if (p->at_once > 1) {
    p->sums = p->apart ? p->shared_bytes : p->x_ring;
    if (p->apart) p->shared_bytes += sums_bytes;
    if (p->shared_bytes < p->sums + part_bytes) return 0;
    p->exchanges = sends && p->runs == 1 && p->shared_bytes >= p->sums + sent_bytes;
  }
  return 1;
}

static int place(lpg_gemm_plan *p, const lpg_gemm_kind *kind, int experts, int paired, int sends,
                 int64_t shared_memory) {
  const int outputs = output_bytes(p, kind, experts > 0 || paired, sends);
  if (outputs > 0 && place_with(p, kind, experts, paired, sends, outputs, shared_memory) &&
      p->x_stages >= LEAST_STAGES_BESIDE)
    return 1;
  return place_with(p, kind, experts, paired, sends, 0, shared_memory);
}

/* What a plan of the kind has however K is cut; 0 if there is none. */
static int make_frame(const lpg_gemm_kind *kind, int x_rows, const lpg_packed *weights, const lpg_expected_rows *rows,
                      lpg_gemm_plan *p) {
  const lpg_gemm_plan none = {0};
  *p = none;
  p->blocks = (int32_t)((weights->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  p->multicast = kind->multicast;
  p->n_tiles = (int32_t)lpg_ceil_div(lpg_gemm_chunk_rows(weights, kind->mode), kind->tile_n * kind->multicast);
  const int64_t m_tiles = lpg_most_tiles(rows, x_rows);
  p->x_rows = x_rows;
  p->by_x_rows = lpg_divisor_of(x_rows);
  p->m_tiles = (int32_t)m_tiles;
  p->by_band = lpg_divisor_of(m_tiles > 0 ? LPG_GEMM_BAND * p->m_tiles : 1);
  p->by_last_band = lpg_divisor_of(p->n_tiles > 0 ? (p->n_tiles - 1) % LPG_GEMM_BAND + 1 : 1);
  return m_tiles * p->n_tiles <= INT32_MAX;
}

/* Cuts K for clusters of so many blocks into so many parts (0: one for each team); 0 if it has no so many parts, or the
 * device no such clusters that run at once. */
static int split(const lpg_gemm_kind *kind, const lpg_problem *problem, const lpg_device *device, int split_k_log2,
                 int parts, lpg_gemm_plan *p) {
  if (kind->multicast > 1 && split_k_log2 > 0) return 0;
  const int cluster = kind->multicast << split_k_log2;
  const int32_t most = cluster > 1 ? device->clusters[cluster] : device->sms;
  const int32_t tiles = p->n_tiles * p->m_tiles;
  p->split_k = 1 << split_k_log2;
  p->at_once = p->split_k * kind->tile.teams;
  p->runs = parts > 0 ? parts / p->at_once : 1;
  p->parts = p->at_once * p->runs;
  if (parts > 0 && p->parts != parts) return 0;
  if (p->runs > 1 && !lpg_gemm_has_runs(kind->tile.tile_m, kind->tile.warps)) return 0;
  if (p->runs > 2 && p->at_once > 1) return 0; /* each part's sums stay by themselves */
  if (most <= 0 || (p->parts > 1 && p->parts > p->blocks)) return 0;
  p->clusters = tiles < 1 ? 1 : tiles < most ? tiles : most;
  p->whole = p->parts == 1 && lpg_gemm_has_halves(p->x_rows) && !problem->experts && !problem->paired
                 ? lpg_whole_tiles(tiles, p->clusters, problem->m, kind->tile.tile_m)
                 : tiles;
  p->part = lpg_partition_of(p->blocks, p->parts);
  return 1;
}

/* Rows of X from which on work tiles that stream-K is for are no larger than they need be. */
enum { LEAST_STREAMED = 65 };

/* Clusters that share work tiles are at different columns at a time, so that each of them reads what others have read
 * before: an image and X must stay in L2, as packed weights need not (2560 x 8192 by 2048 rows: 196 us where 154 were
 * estimated; H200, 2026-11-27). */
enum { MOST_STREAMED_BYTES = 32 << 20 };

static int may_stream(const lpg_problem *problem) {
  return problem->m >= LEAST_STREAMED && !problem->experts && !problem->paired && !problem->batch_invariant;
}

/* Deals out the last work tiles by k blocks: those that do not fill the GPU, and as many more as fill it once, so that
 * a cluster has long runs of blocks. 0 if all waves are full, or the workspace has no room. */
static int stream(const lpg_gemm_kind *kind, const lpg_problem *problem, const lpg_device *device, lpg_gemm_plan *p) {
  const int32_t most = kind->multicast > 1 ? device->clusters[kind->multicast] : device->sms;
  const int32_t tiles = p->n_tiles * p->m_tiles;
  if (!lpg_gemm_streams(kind->tile.tile_m, kind->tile.teams) || !may_stream(problem)) return 0;
  if (kind->mode == LPG_GEMM_SCALES_IMAGE &&
      lpg_gemm_made_bytes(problem->weights, kind->mode) + 2 * problem->m * problem->weights->desc.k >
          MOST_STREAMED_BYTES)
    return 0;
  if (!split(kind, problem, device, 0, 0, p) || p->blocks < 1 || tiles % most == 0) return 0;
  p->whole = tiles > most ? (tiles / most - 1) * most : 0;
  p->streamed = tiles - p->whole;
  const int64_t units = (int64_t)p->streamed * p->blocks;
  if (units > INT32_MAX) return 0;
  p->clusters = units < most ? (int32_t)units : most;
  p->stream = lpg_partition_of((int32_t)units, p->clusters);
  const size_t scratch = lpg_gemm_scratch_bytes(problem, kind->mode);
  return scratch + (size_t)p->clusters * (size_t)kind->multicast * LPG_GEMM_STREAM_BYTES <= problem->workspace;
}

/* ---- candidates ---- */

const lpg_gemm_tile lpgemm_i_gemm_tiles[LPG_GEMM_TILE_COUNT] = {
#define TILE(tile_m, teams, warps) {tile_m, teams, warps},
    LPG_GEMM_TILES(TILE)
#undef TILE
};

typedef struct gemm_state {
  lpg_gemm_scales mode;
  int parts; /* of K; 0: any number */
  int paired;
  int sends; /* outputs are as split_k_exchange.cuh needs, as far as is known without the call */
  lpg_expected_rows rows;
  lpg_gemm_speed speed;
  lpg_gemm_kind kind; /* of the work tile at hand */
  lpg_gemm_plan frame;
  lpg_gemm_costs costs;
  int32_t tile;
} gemm_state;

/* How scales meet the weights: in an image, if that is what the planner is for. */
static lpg_gemm_scales mode_for(const lpg_planner *self, const lpg_problem *problem) {
  return self->type ? LPG_GEMM_SCALES_IMAGE
                    : lpgemm_i_gemm_scaling(problem->weights, problem->x_type, problem->scale_span).mode;
}

static void begin_with(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, int parts,
                       gemm_state *s) {
  s->speed.rates = lpgemm_i_rates_of(device);
  s->speed.sms = device->sms > 0 ? device->sms : 1.0;
  s->speed.alu = lpgemm_i_alu_speed(device);
  s->mode = mode_for(self, problem);
  s->parts = parts;
  s->rows =
      lpg_expected_rows_of(problem->experts && problem->slots > 0 ? problem->slots : problem->m, problem->experts);
  s->paired = problem->paired;
  s->sends = lpg_bytes(problem->y_type) == 2 && problem->weights->desc.n % 8 == 0 && !problem->paired;
  s->speed.loads_x = problem->x_unaligned && lpg_x_copy_bytes(problem, 2) == 0;
}

/* CTAs that share X come first: of equals they read less. */
static int tile(const lpg_problem *problem, const lpg_device *device, int i, void *state) {
  enum { EACH = LPG_GEMM_MOST_WIDTHS * LPG_GEMM_MOST_MULTICAST };
  const lpg_packed *weights = problem->weights;
  const int at = i / EACH, multicast = LPG_GEMM_MOST_MULTICAST - i % LPG_GEMM_MOST_MULTICAST;
  gemm_state *s = state;
  (void)device;
  if (at >= LPG_GEMM_TILE_COUNT) return LPG_NO_MORE;
  const lpg_gemm_tile t = lpgemm_i_gemm_tiles[at];
  const int width = i % EACH / LPG_GEMM_MOST_MULTICAST, x_rows = t.tile_m - width * LPG_GEMM_WIDTH_STEP;
  if (width >= lpg_gemm_widths(t.tile_m)) return LPG_HOLE;
  const int warps = t.teams * t.warps;
  if (problem->experts || problem->paired ? !lpg_gemm_has_for_experts(s->mode, weights->bits, t.tile_m, warps)
                                          : !lpg_gemm_has(s->mode, t.tile_m, warps)) {
    return LPG_HOLE;
  }
  if (!lpg_gemm_has_multicast(t.tile_m, multicast) || (multicast > 1 && s->speed.loads_x)) return LPG_HOLE;
  if (t.tile_m < 32 && s->parts <= 0) return LPG_HOLE;          /* for so few rows there are other kernels */
  if (t.tile_m > 128 && s->rows.each <= 128.0) return LPG_HOLE; /* a smaller work tile does less */
  if (t.warps == 12 && s->rows.each <= (problem->experts ? 32.0 : 64.0)) return LPG_HOLE;
  s->kind = lpg_gemm_kind_of(weights, t, s->mode, multicast);
  s->costs = lpgemm_i_gemm_costs(problem, &s->kind, x_rows, &s->rows, &s->speed);
  s->tile = at;
  return make_frame(&s->kind, x_rows, weights, &s->rows, &s->frame) ? LPG_CANDIDATE : LPG_HOLE;
}

static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  const gemm_state *s = state;
  lpg_gemm_planned *p = plan;
  (void)least;
  if (i > LPG_CLUSTER_SIZES) return LPG_NO_MORE;
  p->plan = s->frame;
  p->tile = s->tile;
  if (i < LPG_CLUSTER_SIZES) {
    if (!split(&s->kind, problem, device, i, s->parts, &p->plan)) return LPG_HOLE;
  } else if (s->parts > 0 || !stream(&s->kind, problem, device, &p->plan)) {
    return LPG_HOLE;
  }
  *ns = lpgemm_i_gemm_cost(&p->plan, &s->kind, &s->rows, &s->costs);
  return LPG_CANDIDATE;
}

static int lay_out(const lpg_device *device, const void *state, void *plan) {
  const gemm_state *s = state;
  return place(&((lpg_gemm_planned *)plan)->plan, &s->kind, s->rows.experts, s->paired, s->sends,
               device->shared_memory);
}

/* ---- batch invariance: the parts of K must not depend on M ---- */

static void begin_with_parts(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device,
                             void *state) {
  begin_with(self, problem, device, self->parts, state);
}

static void finish_with_parts(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device,
                              const void *plan, double ns, lpg_launch *launch) {
  (void)self, (void)problem, (void)device, (void)plan;
  launch->us = ns / 1000.0;
}

/* Nanoseconds of the best plan with so many parts. */
static double cost_with_parts(const lpg_problem *problem, const lpg_device *device, int parts) {
  const lpg_planner with_parts = {.begin = begin_with_parts,
                                  .tile = tile,
                                  .cut = cut,
                                  .lay_out = lay_out,
                                  .finish = finish_with_parts,
                                  .no_plan = "",
                                  .plan_bytes = sizeof(lpg_gemm_planned),
                                  .parts = parts};
  lpg_planned planned;
  return lpgemm_i_plan(&with_parts, problem, device, &planned) ? HUGE_VAL : planned.launch.us * 1000.0;
}

/* The number that is the least wrong from a few rows to many, by how many times as long as the best plan it takes. */
static int invariant_parts(const lpg_problem *problem, const lpg_device *device) {
  enum { CHOICES = LPG_CLUSTER_SIZES + 1 }; /* powers of two: CTAs of a cluster by one or two teams */
  static const int64_t rows[] = {16, 64, 256, 2048};
  double worst[CHOICES] = {0.0};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    double cost[CHOICES], best = HUGE_VAL;
    lpg_problem p = *problem;
    p.m = rows[r];
    if (p.slots > 0) p.slots = rows[r]; /* experts: as many */
    p.x_unaligned = 0;                  /* nor on where X lies */
    for (int i = 0; i < CHOICES; i++) {
      cost[i] = cost_with_parts(&p, device, 1 << i);
      if (cost[i] < best) best = cost[i];
    }
    for (int i = 0; i < CHOICES; i++) worst[i] = fmax(worst[i], cost[i] / best);
  }
  int least = 0;
  for (int i = 1; i < CHOICES; i++) {
    if (worst[i] < worst[least]) least = i;
  }
  return 1 << least;
}

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  begin_with(self, problem, device, problem->batch_invariant ? invariant_parts(problem, device) : 0, state);
}

/* ---- refusals, the time of a call, the workspace ---- */

static const char *refuses_experts(const lpg_problem *problem) {
  const lpg_packed *weights = problem->weights;
  const lpg_gemm_scales mode = lpgemm_i_gemm_scaling(weights, problem->x_type, problem->scale_span).mode;
  if (!problem->experts && !problem->paired) return NULL;
  if (!lpg_gemm_takes_experts(mode, lpg_gemm_weights_of(weights->desc.type, problem->x_type), weights->bits)) {
    return "it takes no experts and no pairs of rows with such weights and scales";
  }
  if (problem->experts > LPG_GEMM_MOST_EXPERTS) return "it takes at most 1024 experts";
  if (problem->paired && problem->activation != LPGEMM_ACTIVATION_SILU &&
      problem->activation != LPGEMM_ACTIVATION_GELU_TANH) {
    return "it takes pairs of rows with SILU and GELU_TANH only";
  }
  return NULL;
}

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const char *reason = lpgemm_i_dequantisers_refuse(problem);
  (void)self, (void)device;
  if (!reason) reason = lpgemm_i_gemm_scales_refuse(problem);
  if (!reason) reason = refuses_experts(problem);
  if (reason) return reason;
  return problem->m > INT32_MAX / 2 ? "it takes no matrix as large as this" : NULL;
}

static const char *image_refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)device;
  const char *reason = lpgemm_i_expand_does_not_pay(problem);
  if (reason) return reason;
  if (problem->y_type == LPGEMM_I32) return "its sums are no integers";
  if (problem->weights->desc.k == 0) return "there is nothing to expand";
  reason = lpgemm_i_expand_refuses(problem, self->type);
  if (reason) return reason;
  if (lpgemm_i_expand_scaling(problem, self->type).in_table) return "it puts no scales of groups on sums";
  if (problem->weights->row_tiles > 0 && lpg_gemm_chunk_tiles(problem->weights, LPG_GEMM_SCALES_IMAGE) == 0)
    return "the rows are too long for its workspace";
  return NULL;
}

/* How many times as long as products of experts alone, to which costs were fitted, they take in a layer: u4 and MXFP4
 * in six models with 24 to 256 tokens, H200, 2026-11-28. Why was not found. */
static double slower_in_layers(const lpg_problem *problem) {
  const lpgemm_dtype_t type = problem->weights->desc.type;
  if (!problem->experts) return 1.0;
  return lpg_is_integer_kind(type) ? 1.2 : type == LPGEMM_FLOAT(2, 1) ? 0.95 : 1.0;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_gemm_planned *planned = plan;
  const lpg_gemm_plan *p = &planned->plan;
  const lpg_gemm_kind kind =
      lpg_gemm_kind_of(problem->weights, lpgemm_i_gemm_tiles[planned->tile], mode_for(self, problem), p->multicast);
  launch->tile_n = kind.tile_n;
  launch->tile_m = p->x_rows;
  launch->split_k = p->split_k;
  launch->multicast = p->multicast;
  launch->clusters = p->clusters;
  launch->streams = p->streamed > 0;
  launch->work_tiles = (int64_t)p->n_tiles * p->m_tiles;
  launch->threads = 32 * (kind.tile.teams * kind.tile.warps + LPG_GEMM_PRODUCER_WARPS);
  launch->shared_bytes = p->shared_bytes;
  launch->stages = p->x_stages;
  launch->mode = (int32_t)kind.mode;
  const int64_t rows = lpg_gemm_chunk_rows(problem->weights, kind.mode), n = problem->weights->desc.n;
  if (rows < n) launch->passes = (int32_t)lpg_ceil_div(n, rows);
  /* 1.5 us: the costs compare plans, and leave out what all of them take on small matrices. */
  launch->us =
      1.5 + lpg_x_copy_us(problem, 2) + lpg_loose_outputs_us(problem, device) +
      launch->passes * ((lpg_gemm_makes(kind.mode) ? lpgemm_i_gemm_make_us(problem->weights, kind.mode, device) : 0.0) +
                        slower_in_layers(problem) * ns / 1000.0);
}

static size_t workspace(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)device;
  return lpg_gemm_scratch_bytes(problem, mode_for(self, problem));
}

/* Of stream-K. */
static size_t more_workspace(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const size_t bytes = (size_t)device->sms * LPG_GEMM_STREAM_BYTES;
  const size_t own = workspace(self, problem, device) - lpg_x_copy_bytes(problem, 2);
  if (!may_stream(problem)) return 0;
  return own + bytes <= LPG_GEMM_MOST_PREPARED ? bytes : 0; /* 64 MiB for all */
}

#define MODE(name, word) word,
static const char *const modes[] = {LPG_GEMM_EACH_SCALES(MODE)};
#undef MODE
#define PLANNER(name, refusals, image, how_often)               \
  const lpg_planner lpgemm_i_##name##_planner = {               \
      .refuses = refusals,                                      \
      .begin = begin,                                           \
      .tile = tile,                                             \
      .cut = cut,                                               \
      .lay_out = lay_out,                                       \
      .finish = finish,                                         \
      .workspace = workspace,                                   \
      .more_workspace = more_workspace,                         \
      .no_plan = "the GPU has too little shared memory for it", \
      .modes = modes,                                           \
      .state_bytes = sizeof(gemm_state),                        \
      .plan_bytes = sizeof(lpg_gemm_planned),                   \
      .mma = LPG_WGMMA_F16,                                     \
      .dequantises = how_often,                                 \
      .type = image}; /* of the image; 0: weights are dequantised in registers */
PLANNER(gemm, refuses, 0, LPG_DEQUANT_PER_TILE)
PLANNER(dequant_image_f16, image_refuses, LPGEMM_F16, LPG_DEQUANT_ONCE)
PLANNER(dequant_image_bf16, image_refuses, LPGEMM_BF16, LPG_DEQUANT_ONCE)
