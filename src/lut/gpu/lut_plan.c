/* The planner of the GPU's table lookup. */
#include "lut_plan.h"

#include <math.h>

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *weights = problem->weights;
  const lpg_axis *group = &weights->group;
  (void)self, (void)device;
  if (lpg_is_integer_kind(problem->x_type) && problem->x_type != LPGEMM_I8) {
    return "it takes X of fp16, bf16, int8 and fp8 only";
  }
  if (group->count > 1 && (group->k % LPG_CHUNK_K != 0 || (group->k & (group->k - 1)) != 0)) {
    return "it takes groups of 128, 256, 512 ... columns and whole rows only";
  }
  if (weights->desc.zero == LPGEMM_ZERO_CONSTANT && fabsf(weights->desc.zero_constant) > 0x1p100f)
    return "the zero is too large";
  return weights->n_padded > INT32_MAX / 2 ? "it takes no matrix as large as this" : NULL;
}

static const char *automatic(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self, (void)problem, (void)device;
  return "it is an experiment: gemv and gemv1 were faster wherever both were measured";
}

/* Nanoseconds: of its tables, of the sums of every super tile, of the warps' blocks. Measured on an H200, 2026-11-22
 * and -23, from 4096 x 4096 to 57344 x 8192. */
static double cost_of(const lpg_lut_gpu_plan *p, int bits) {
  const int tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const int row_tiles = lpg_lut_gpu_row_tiles(bits), vectors = row_tiles * lpg_lut_gpu_vectors(bits);
  return 4800.0 + tiles * (25.0 * row_tiles + 20.25 * vectors * blocks);
}

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  (void)self, (void)device;
  *(int *)state = problem->weights->bits;
}

/* K in 1, 2, 4, 8 parts. */
static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  const lpg_packed *weights = problem->weights;
  const lpg_lut_gpu_plan none = {0};
  lpg_lut_gpu_plan *p = plan;
  (void)least, (void)state;
  if (i >= LPG_LUT_GPU_CUTS) return LPG_NO_MORE;
  const int32_t most = i > 0 ? device->clusters[1 << i] : device->sms;
  *p = none;
  p->blocks = (int32_t)lpg_ceil_div(weights->k_padded, lpg_lut_gpu_chunks(weights->bits) * LPG_CHUNK_K);
  p->super_tiles = (int32_t)lpg_ceil_div(weights->row_tiles, lpg_lut_gpu_row_tiles(weights->bits));
  p->split_k = 1 << i;
  p->clusters = most < p->super_tiles ? most : p->super_tiles;
  if (p->clusters <= 0 || (i > 0 && p->split_k > p->blocks)) return LPG_HOLE;
  p->k_part = lpg_partition_of(p->blocks, p->split_k);
  p->n_part = lpg_partition_of(p->super_tiles, p->clusters);
  *ns = cost_of(p, weights->bits);
  return LPG_CANDIDATE;
}

static int lay_out(const lpg_device *device, const void *state, void *plan) {
  const int bits = *(const int *)state;
  lpg_lut_gpu_plan *p = plan;
  const int64_t tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const int64_t chunks = blocks * lpg_lut_gpu_chunks(bits);
  p->slot_bytes = lpg_lut_gpu_row_tiles(bits) * LPG_TILE_ROWS * 4;
  const int64_t scale_data = chunks * LPG_LUT_GPU_TABLES, slots = scale_data + chunks * LPG_LUT_GPU_SCALES;
  const int64_t peers = slots + (tiles + lpg_lut_gpu_warps(bits) - 1) * p->slot_bytes;
  const int64_t peer_bytes = p->split_k > 1 ? (tiles + p->split_k - 1) / p->split_k * p->slot_bytes : 0;
  if (peers + p->split_k * peer_bytes > device->shared_memory) return 0;
  p->scale_data = (int32_t)scale_data;
  p->slots = (int32_t)slots;
  p->peers = (int32_t)peers;
  p->peer_bytes = (int32_t)peer_bytes;
  p->shared_bytes = p->peers + p->split_k * p->peer_bytes;
  return 1;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const int bits = problem->weights->bits;
  const lpg_lut_gpu_plan *p = plan;
  (void)self;
  launch->tile_n = lpg_lut_gpu_row_tiles(bits) * LPG_TILE_ROWS;
  launch->tile_m = 1;
  launch->split_k = p->split_k;
  launch->clusters = p->clusters;
  launch->work_tiles = p->super_tiles;
  launch->passes = (int32_t)problem->m;
  launch->threads = 32 * lpg_lut_gpu_warps(bits);
  launch->shared_bytes = p->shared_bytes;
  launch->us = (double)problem->m * ns / 1000.0;
}

const lpg_planner lpgemm_i_lut_gpu_planner = {
    .refuses = refuses,
    .automatic = automatic,
    .begin = begin,
    .cut = cut,
    .lay_out = lay_out,
    .finish = finish,
    .no_plan = "the tables of a row do not fit the shared memory of a cluster",
    .state_bytes = sizeof(int),
    .plan_bytes = sizeof(lpg_lut_gpu_plan),
    .mma = LPG_MMA_NONE,
    .dequantises = LPG_DEQUANT_NEVER};
