/* The planner of dequant, but for images that gemm's work tiles multiply (gemm_plan.c): chunks of rows, split-K,
 * multicast. */
#include "dequant_plan.h"

#include <math.h>

#include "../operand/expand.h"
#include "../operand/limits.h"
#include "../plan/rates.h"

enum { MOST_SPLIT_K = 8, MOST_MULTICAST = 2 };

typedef struct dequant_state {
  lpg_dequant_plan frame; /* of the multicast and split-K at hand */
  int is_there, wgmma;
  double slower; /* a stage takes so much longer than one of fp16 */
  int32_t sums, most_tiles, most_split_k;
  int64_t m_tiles; /* of one CTA */
} dequant_state;

/* ---- refusals ---- */

static int make_frame(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device,
                      lpg_dequant_plan *p);

static lpgemm_dtype_t image_of(const lpg_planner *self, const lpg_problem *problem) {
  return lpgemm_i_expand_image(problem, self->type, self->wgmma);
}

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpgemm_dtype_t image = image_of(self, problem);
  (void)device;
  const char *reason = lpgemm_i_expand_does_not_pay(problem);
  if (reason) return reason;
  if (problem->y_type == LPGEMM_I32 && image != LPGEMM_I8) return "its sums are no integers";
  if (image == LPGEMM_I8 && !lpg_x_is_int8(problem->x_type))
    return "the activations' codes are not the numbers as int8";
  if (problem->weights->desc.k == 0) return "there is nothing to expand";
  reason = lpgemm_i_expand_refuses(problem, image);
  if (reason) return reason;
  const int in_table = lpgemm_i_expand_scaling(problem, image).in_table;
  if (!self->wgmma) return in_table ? "it puts no scales of groups on sums" : NULL;
  return image == LPGEMM_F16 && !in_table ? "the form with the work tiles of gemm takes it" : NULL;
}

/* The sm_80 form on a GPU of 9.0 was timed 211 times and best in none (bench/results/h200-regret.json). */
static const char *automatic(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)problem;
  return !self->wgmma && device->arch == 90 ? "the form for sm_90a is faster on this GPU" : NULL;
}

static size_t workspace(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  lpg_dequant_plan p;
  if (!make_frame(self, problem, device, &p)) return 0;
  p.chunk_tiles = lpg_dequant_most_tiles(&p); /* else it would not be monotone in m */
  return (size_t)lpg_dequant_chunk_bytes(&p) + lpg_dequant_copy_bytes(problem, (int)lpg_bytes(image_of(self, problem)));
}

/* ---- what a plan has whatever shares the weights and cuts K ---- */

/* 0 if the workspace or shared memory does not do. */
static int make_frame(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device,
                      lpg_dequant_plan *p) {
  const lpg_packed *weights = problem->weights;
  const lpgemm_dtype_t image = image_of(self, problem);
  const int x_bytes = (int)lpg_bytes(image), wgmma = self->wgmma;
  const lpg_expand_scaling scaling = lpgemm_i_expand_scaling(problem, image);
  const lpg_dequant_plan none = {0};
  *p = none;
  p->k_stages = (int32_t)lpg_ceil_div(weights->desc.k, LPG_DEQUANT_STAGE_BYTES / x_bytes);
  p->n_tiles = (int32_t)lpg_ceil_div(weights->desc.n, LPG_DEQUANT_TILE_N);
  p->scale_data = scaling.finds ? 1 : scaling.in_table ? p->k_stages : 0;
  p->spare = problem->m * weights->desc.k * x_bytes;
  p->factors = LPG_DEQUANT_BARRIER_BYTES;
  p->sums = p->factors + LPG_DEQUANT_TILE_N * 4;
  /* without wgmma the sums take the ring's place */
  p->x_ring = lpg_round_up_to(p->sums + (wgmma ? LPG_DEQUANT_SUMS_BYTES : 0), 1024);
  p->stages = (int32_t)((device->shared_memory - p->x_ring) / (LPG_DEQUANT_X_BYTES + LPG_DEQUANT_W_BYTES));
  if (p->stages > LPG_DEQUANT_MOST_STAGES) p->stages = LPG_DEQUANT_MOST_STAGES;
  p->w_ring = p->x_ring + p->stages * LPG_DEQUANT_X_BYTES;
  p->shared_bytes = p->w_ring + p->stages * LPG_DEQUANT_W_BYTES;
  return p->k_stages > 0 && p->stages >= (wgmma ? LPG_DEQUANT_PRODUCER_WARPS : 2) &&
         (p->n_tiles == 0 || lpg_dequant_most_tiles(p) > 0);
}

/* ---- candidates ---- */

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  dequant_state *s = state;
  const int table = lpgemm_i_expand_scaling(problem, image_of(self, problem)).in_table;
  s->is_there = make_frame(self, problem, device, &s->frame);
  s->wgmma = self->wgmma;
  s->slower = lpg_bytes(self->type) == 1 ? 1.19 : table ? 1.3 : 1.0;
  s->sums = s->frame.sums;
  s->most_tiles = s->is_there ? lpg_dequant_most_tiles(&s->frame) : 0;
  s->most_split_k = s->wgmma && (lpg_bytes(self->type) > 1 || table) ? MOST_SPLIT_K : 1; /* integers stay integers */
  s->m_tiles = lpg_ceil_div(problem->m, LPG_DEQUANT_TILE_M);
}

/* Clusters of so many CTAs that run at once; 0: there are none of this size. */
static int32_t clusters_of(int32_t cluster, const lpg_device *device) {
  if (cluster == 1) return device->sms > 0 ? device->sms : 1;
  return cluster <= LPG_CLUSTER_MOST && cluster != 5 && cluster != 7 ? device->clusters[cluster] : 0;
}

/* With multicast first, then without; each with split-K 1, 2 and so on: of equals the one that reads less. */
static int tile(const lpg_problem *problem, const lpg_device *device, int i, void *state) {
  dequant_state *s = state;
  lpg_dequant_plan *p = &s->frame;
  (void)problem;
  if (!s->is_there || i >= MOST_MULTICAST * MOST_SPLIT_K) return LPG_NO_MORE;
  p->multicast = MOST_MULTICAST - i / MOST_SPLIT_K;
  p->split_k = 1 + i % MOST_SPLIT_K;
  if (p->multicast > 1 && (!s->wgmma || s->m_tiles <= 1)) return LPG_HOLE;
  if (p->split_k > s->most_split_k || p->split_k > p->k_stages) return LPG_HOLE;
  p->cluster = p->multicast * p->split_k;
  p->clusters = clusters_of(p->cluster, device);
  if (p->clusters < 1) return LPG_HOLE;
  p->m_tiles = (int32_t)lpg_ceil_div(s->m_tiles, p->multicast);
  p->persistent = s->wgmma && p->split_k == 1;
  p->sums = p->persistent ? s->sums : p->x_ring;
  p->chunk_tiles = 0;
  return LPG_CANDIDATE;
}

/* Nanoseconds that a chunk of so many work tiles of rows may take (measured on the H200, docs/log/2026-11.md). A stage
 * takes longer the more CTAs work, or as long as it takes to load X and the CTA's part of the weights. */
static double chunk_cost(const lpg_dequant_plan *p, int32_t n_tiles, double slower, const lpg_device *device) {
  const double sms = device->sms > 0 ? device->sms : 1.0, bytes = (double)(n_tiles * lpg_dequant_tile_bytes(p));
  const int64_t tiles = (int64_t)n_tiles * p->m_tiles, rounds = (tiles + p->clusters - 1) / p->clusters;
  const double busy = (double)((tiles < p->clusters ? tiles : p->clusters) * p->cluster) / sms;
  const double loaded = busy * (LPG_DEQUANT_X_BYTES + (double)LPG_DEQUANT_W_BYTES / p->multicast) /
                        lpg_copy_rate(lpgemm_i_rates_of(device));
  const double multiplied = (550.0 + 165.0 * busy) * slower;
  const int32_t stages = (p->k_stages + p->split_k - 1) / p->split_k;
  const double sums = p->split_k > 1 ? 3000.0 : 0.0;
  return LPG_DEQUANT_CHUNK_NS + bytes / (sms * 20.0) +
         (double)rounds * (stages * (loaded > multiplied ? loaded : multiplied) + 2500.0 + sums);
}

static double cost_of(const lpg_dequant_plan *p, double slower, const lpg_device *device) {
  const int32_t chunks = p->chunk_tiles > 0 ? p->n_tiles / p->chunk_tiles : 0;
  const int32_t left = p->n_tiles - chunks * p->chunk_tiles;
  return chunks * chunk_cost(p, p->chunk_tiles, slower, device) +
         (left > 0 ? chunk_cost(p, left, slower, device) : 0.0);
}

/* The fewest chunks that the workspace allows, and some more. */
static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  dequant_state *s = state;
  lpg_dequant_plan *p = &s->frame;
  const int32_t fewest = s->most_tiles > 0 ? (p->n_tiles + s->most_tiles - 1) / s->most_tiles : 0, chunks = fewest + i;
  const int32_t tiles = chunks > 0 ? (p->n_tiles + chunks - 1) / chunks : 0;
  (void)problem;
  if (i > LPG_DEQUANT_MOST_CHUNKS) return LPG_NO_MORE;
  if (i > 0 && tiles == p->chunk_tiles) return LPG_HOLE;
  if (tiles > 0 && (double)p->n_tiles / (double)tiles * LPG_DEQUANT_CHUNK_NS >= least) return LPG_NO_MORE;
  p->chunk_tiles = tiles;
  *ns = cost_of(p, s->slower, device);
  if (*ns >= 1.5 * least) return LPG_NO_MORE; /* no number of chunks makes up for that */
  *(lpg_dequant_plan *)plan = *p;
  return LPG_CANDIDATE;
}

/* ---- the time of a call ---- */

/* How much longer a product takes than the plan's constants say: of 16 bits by bench/results/h200-prefill.json (1.02 to
 * 1.18 in 17 cases). Of 8 bits groups of int8 are scaled in fp32, and so are the sums of a stage of e4m3, by
 * bench/results/h200-eight.json. */
static double slower_than_planned(lpgemm_dtype_t image, const lpg_dequant_plan *plan) {
  if (lpg_bytes(image) == 2) return 1.1;
  return image == LPGEMM_E4M3 ? 1.25 : plan->scale_data > 1 ? 1.4 : 1.0;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_dequant_plan *p = plan;
  const double slower = self->wgmma ? 1.0 : 1.9 / lpgemm_i_mma_speed(device); /* mma.sync, on the H200 */
  const int64_t tiles = (int64_t)p->chunk_tiles * p->m_tiles;
  launch->tile_n = LPG_DEQUANT_TILE_N;
  launch->tile_m = LPG_DEQUANT_TILE_M;
  launch->split_k = p->split_k;
  launch->multicast = p->multicast;
  launch->clusters = (int32_t)(p->persistent && tiles > p->clusters ? p->clusters : tiles);
  launch->work_tiles = tiles;
  launch->passes = p->chunk_tiles > 0 ? (p->n_tiles + p->chunk_tiles - 1) / p->chunk_tiles : 0;
  launch->threads = 32 * (LPG_DEQUANT_WARPS + (self->wgmma ? LPG_DEQUANT_PRODUCER_WARPS : 0));
  launch->shared_bytes = p->shared_bytes;
  launch->stages = p->stages;
  launch->us = lpg_x_copy_us(problem, (int)lpg_bytes(image_of(self, problem))) + lpg_loose_outputs_us(problem, device) +
               ns * slower_than_planned(self->type, p) * slower / 1000.0;
}

/* By the words of the kernels' names: the type that is multiplied, and 1 for the form of sm_90a. */
#define PLANNER(name, image, is_wgmma)                                                                                 \
  const lpg_planner lpgemm_i_dequant_##name##_planner = {                                                              \
      .refuses = refuses,                                                                                              \
      .automatic = automatic,                                                                                          \
      .begin = begin,                                                                                                  \
      .tile = tile,                                                                                                    \
      .cut = cut,                                                                                                      \
      .finish = finish,                                                                                                \
      .workspace = workspace,                                                                                          \
      .no_plan = "the rows are too long for its workspace",                                                            \
      .state_bytes = sizeof(dequant_state),                                                                            \
      .plan_bytes = sizeof(lpg_dequant_plan),                                                                          \
      .mma = is_wgmma ? (image == LPGEMM_I8 || image == LPGEMM_E4M3 ? LPG_WGMMA_8 : LPG_WGMMA_F16) : LPG_MMA_SYNC_F16, \
      .dequantises = LPG_DEQUANT_ONCE,                                                                                 \
      .type = image,                                                                                                   \
      .wgmma = is_wgmma};
PLANNER(f16_sm90a, LPGEMM_F16, 1)
PLANNER(i8_sm90a, LPGEMM_I8, 1)
PLANNER(e4m3_sm90a, LPGEMM_E4M3, 1)
PLANNER(e5m2_sm90a, LPGEMM_E4M3, 1)
PLANNER(f16_sm80, LPGEMM_F16, 0)
PLANNER(bf16_sm80, LPGEMM_BF16, 0)
PLANNER(i8_sm80, LPGEMM_I8, 0)
