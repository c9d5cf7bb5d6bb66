/* The planner of gemv1 with X of 16 bits, and what it shares with the one of int8 (gemv1_i8_plan.c). */
#include "gemv1_plan.h"

#include <math.h>

#include "../kernels/plan/rates.h"

/* ---- candidates: K in 1, 2, 4, 8 parts ---- */

void lpgemm_i_gemv1_begin(lpg_gemv1_mode_fn *mode_of, const lpg_problem *problem, void *state) {
  *(lpg_gemv1_mode *)state = mode_of(problem->weights->bits, problem->m);
}

/* Nanoseconds: units of work, or reading the weights; before them planes of X, in the end the sums of the parts of K.
 */
static double cost_of(const lpg_gemv1_plan *p, const lpg_gemv1_mode *mode, const lpg_packed *weights,
                      const lpg_device *device) {
  const int tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const double units = (double)lpg_round_up((int64_t)tiles * blocks, LPG_GEMV1_WARPS);
  const double together = p->split_k > 4 ? 1200.0 : p->split_k > 2 ? 800.0 : p->split_k > 1 ? 400.0 : 0.0;
  const double read = (double)weights->total_bytes / lpgemm_i_rates_of(device)->dram;
  const double work = (units * mode->unit + blocks * mode->planes) / lpgemm_i_alu_speed(device);
  return 4000.0 + fmax(read, work) + together;
}

int lpgemm_i_gemv1_cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state,
                       void *plan, double *ns) {
  const lpg_gemv1_mode *mode = state;
  const lpg_packed *weights = problem->weights;
  const lpg_gemv1_plan none = {0};
  lpg_gemv1_plan *p = plan;
  (void)least;
  if (i >= LPG_GEMV1_CUTS) return LPG_NO_MORE;
  const int32_t most = i > 0 ? device->clusters[1 << i] : device->sms;
  *p = none;
  p->tile_m = mode->tile_m;
  p->blocks = (int32_t)lpg_ceil_div(weights->k_padded, mode->chunks * LPG_CHUNK_K);
  p->super_tiles = (int32_t)lpg_ceil_div(weights->row_tiles, mode->row_tiles);
  p->split_k = 1 << i;
  p->clusters = most < p->super_tiles ? most : p->super_tiles;
  if (p->clusters <= 0 || (i > 0 && p->split_k > p->blocks)) return LPG_HOLE;
  p->k_part = lpg_partition_of(p->blocks, p->split_k);
  p->n_part = lpg_partition_of(p->super_tiles, p->clusters);
  *ns = cost_of(p, mode, weights, device);
  return LPG_CANDIDATE;
}

int lpgemm_i_gemv1_lay_out(const lpg_device *device, const void *state, void *plan) {
  const lpg_gemv1_mode *mode = state;
  lpg_gemv1_plan *p = plan;
  const int64_t tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const int64_t x_stride = blocks * mode->x_bytes, slots = mode->x_parts * x_stride;
  p->slot_bytes = mode->row_tiles * LPG_TILE_ROWS * p->tile_m * 4;
  const int64_t peer_bytes = p->split_k > 1 ? (tiles + p->split_k - 1) / p->split_k * p->slot_bytes : 0;
  const int64_t peers = slots + (tiles + LPG_GEMV1_WARPS - 1) * p->slot_bytes, rows = peers + p->split_k * peer_bytes;
  const int64_t row_chunks = rows + tiles * mode->row_tiles * LPG_TILE_ROWS * mode->row_bytes;
  const int64_t row_slices = row_chunks + blocks * mode->chunks * mode->chunk_bytes;
  const int64_t bytes = row_slices + p->split_k * mode->slice_bytes;
  if (bytes > device->shared_memory) return 0;
  p->x_stride = (int32_t)x_stride;
  p->slots = (int32_t)slots;
  p->peers = (int32_t)peers;
  p->peer_bytes = (int32_t)peer_bytes;
  p->rows = (int32_t)rows;
  p->row_chunks = (int32_t)row_chunks;
  p->row_slices = (int32_t)row_slices;
  p->shared_bytes = (int32_t)bytes;
  return 1;
}

void lpgemm_i_gemv1_finish(const lpg_problem *problem, const lpg_device *device, const void *plan, double ns,
                           lpg_launch *launch) {
  const lpg_gemv1_plan *p = plan;
  (void)device;
  launch->tile_n = (int32_t)lpg_ceil_div(problem->weights->row_tiles, p->super_tiles) * LPG_TILE_ROWS;
  launch->tile_m = p->tile_m;
  launch->split_k = p->split_k;
  launch->clusters = p->clusters;
  launch->work_tiles = p->super_tiles;
  launch->threads = 32 * LPG_GEMV1_WARPS;
  launch->shared_bytes = p->shared_bytes;
  launch->us = ns / 1000.0;
}

/* ---- X of 16 bits ---- */

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *weights = problem->weights;
  const lpg_axis *group = &weights->group;
  (void)self, (void)device;
  if (lpg_bytes(problem->x_type) == 1) return "it takes X of 16 bits only";
  if (group->count > 1 && (group->k % LPG_CHUNK_K != 0 || (group->k & (group->k - 1)) != 0)) {
    return "it takes groups of 128, 256, 512 ... columns and whole rows only";
  }
  if (weights->desc.zero == LPGEMM_ZERO_CONSTANT && fabsf(weights->desc.zero_constant) > 0x1p100f)
    return "the zero is too large";
  if (weights->n_padded > INT32_MAX / 2 || weights->k_padded > INT32_MAX / 4)
    return "it takes no matrix as large as this";
  return NULL;
}

/* It was measured, and won, from 2048 x 2048 on by one row (H200, 2026-11-22), from 5120 x 640 on by two (2026-11-23).
 */
static const char *automatic(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const double weights = (double)problem->weights->desc.n * (double)problem->weights->desc.k;
  (void)self, (void)device;
  if (weights < (problem->m <= 1 ? 2048.0 * 2048.0 : 5120.0 * 640.0)) {
    return "it was measured on larger matrices only: from 2048 x 2048 on by one row of X, from 5120 x 640 on by two";
  }
  return NULL;
}

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  (void)self, (void)device;
  lpgemm_i_gemv1_begin(lpg_gemv1_mode_of, problem, state);
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  (void)self;
  lpgemm_i_gemv1_finish(problem, device, plan, ns, launch);
}

const lpg_planner lpgemm_i_gemv1_planner = {.refuses = refuses,
                                            .automatic = automatic,
                                            .begin = begin,
                                            .cut = lpgemm_i_gemv1_cut,
                                            .lay_out = lpgemm_i_gemv1_lay_out,
                                            .finish = finish,
                                            .no_plan = "the GPU has too little shared memory for it",
                                            .state_bytes = LPG_GEMV1_STATE_BYTES,
                                            .plan_bytes = sizeof(lpg_gemv1_plan),
                                            .mma = LPG_MMA_B1,
                                            .dequantises = LPG_DEQUANT_NEVER};
