/* The planner of skinny8. */
#include "gemm8_skinny_plan.h"

#include <math.h>

#include "../operand/limits.h"
#include "../plan/rates.h"

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self, (void)device;
  return lpgemm_i_integers_refuse(problem);
}

/* Nanoseconds of a k block when all groups of warps have one: making bytes of words, multiplying, and waiting for
 * words, or as long as it takes to load them. Work tiles of the same rows of W that run at once read them from L2. */
static double block_cost(int bits, int tile_m, int32_t m_tiles, const lpg_device *device) {
  const double bytes = LPG_SKINNY8_GROUPS * LPG_SKINNY8_TILE_N * LPG_SKINNY8_BLOCK_K / 8.0 * bits;
  const double load = bytes * (0.5 + 0.5 / m_tiles) / lpg_dram_rate(lpgemm_i_rates_of(device));
  const double unpack = (bits & (bits - 1)) == 0 ? 510.0 : 880.0; /* fields at the same place of every word, or not */
  const double multiply = tile_m > 32 ? 200.0 : tile_m > 16 ? 120.0 : tile_m > 8 ? 70.0 : 0.0;
  const double all = unpack + multiply + 110.0 * bits / m_tiles;
  return fmax(load, all / lpgemm_i_alu_speed(device));
}

/* Nanoseconds, measured on an H200, 2026-11-22: 1, 2 and 3 bits by 1 and 64 rows, 1k x 1k to 14k x 4k, with each
 * split-K and number of parts. */
static double cost_of(const lpg_skinny8_plan *p, int bits, int tile_m, int32_t at_once, const lpg_device *device) {
  const double block = block_cost(bits, tile_m, p->m_tiles, device), sums = 20.0 * tile_m;
  const double together = p->split_k > 1 ? 300.0 + 50.0 * tile_m : 0.0; /* sums go through the cluster */
  const int32_t waves = (p->clusters * p->m_tiles + at_once - 1) / at_once;
  const double rounds = p->rounds * (p->part_blocks * block + sums + together) + (p->rounds - 1) * 1500.0;
  return 1500.0 + waves * (1600.0 + 4.5 * tile_m * p->slice_blocks + rounds);
}

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  (void)problem, (void)device;
  *(int *)state = self->tile_m;
}

/* Split-K 1, 2, 4, 8; in each 1, 2 or 4 groups of warps share a work tile. */
enum { PARTS = 3 };

static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  const lpgemm_weight_desc_t *d = &problem->weights->desc;
  const int tile_m = *(const int *)state;
  const int32_t blocks = (int32_t)lpg_ceil_div(d->k, LPG_SKINNY8_BLOCK_K);
  const lpg_skinny8_plan none = {0};
  lpg_skinny8_plan *p = plan;
  (void)least;
  if (i >= LPG_CLUSTER_SIZES * PARTS) return LPG_NO_MORE;
  *p = none;
  p->split_k = 1 << i / PARTS;
  p->parts = 1 << i % PARTS;
  p->slice_blocks = (blocks + p->split_k - 1) / p->split_k;
  p->part_blocks = (p->slice_blocks + p->parts - 1) / p->parts;
  p->tiles = (int32_t)lpg_ceil_div(d->n, LPG_SKINNY8_TILE_N);
  p->m_tiles = (int32_t)lpg_ceil_div(problem->m, tile_m);
  const int32_t all = device->clusters[p->split_k], each = lpg_skinny8_each(p), wanted = (p->tiles + each - 1) / each;
  const int32_t at_once = all > p->m_tiles ? all / p->m_tiles : 1; /* of those that have the same rows of X */
  if (all < 1) return LPG_HOLE;
  p->clusters = wanted < at_once ? wanted : at_once;
  p->rounds = p->clusters > 0 ? (wanted + p->clusters - 1) / p->clusters : 0;
  p->share = LPG_SKINNY8_TILE_N * each / p->split_k;
  p->pitch = p->share + 4;
  p->x_at = (LPG_SKINNY8_HEAD_BYTES + p->split_k * p->parts * tile_m * p->pitch * 4 + 1023) / 1024 * 1024;
  p->shared_bytes = p->x_at + p->slice_blocks * LPG_SKINNY8_BLOCK_K * tile_m;
  *ns = cost_of(p, problem->weights->bits, tile_m, all, device);
  return LPG_CANDIDATE;
}

static int lay_out(const lpg_device *device, const void *state, void *plan) {
  (void)state;
  return ((const lpg_skinny8_plan *)plan)->shared_bytes <= device->shared_memory;
}

/* Storing, which the cost leaves out since it is the same for all plans: 4096 x 4096 by 64 rows, 1 and 2 bits
 * (bench/results/h200-planes.json). */
static double store_us(const lpg_problem *problem) {
  return 2.5e-6 * (double)problem->m * (double)problem->weights->desc.n;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_skinny8_plan *p = plan;
  (void)device;
  launch->tile_n = LPG_SKINNY8_TILE_N;
  launch->tile_m = self->tile_m;
  launch->split_k = p->split_k;
  launch->clusters = p->clusters * p->m_tiles;
  launch->work_tiles = (int64_t)p->tiles * p->m_tiles;
  launch->threads = LPG_SKINNY8_GROUPS * 128;
  launch->shared_bytes = p->shared_bytes;
  launch->us = ns / 1000.0 + store_us(problem);
}

#define PLANNER(rows)                                                                                          \
  const lpg_planner lpgemm_i_skinny8_##rows##_planner = {.refuses = refuses,                                   \
                                                         .begin = begin,                                       \
                                                         .cut = cut,                                           \
                                                         .lay_out = lay_out,                                   \
                                                         .finish = finish,                                     \
                                                         .no_plan = "the rows are too long for shared memory", \
                                                         .state_bytes = sizeof(int),                           \
                                                         .plan_bytes = sizeof(lpg_skinny8_plan),               \
                                                         .mma = LPG_WGMMA_8,                                   \
                                                         .dequantises = LPG_DEQUANT_PER_TILE,                  \
                                                         .tile_m = rows};
PLANNER(8)
PLANNER(16)
PLANNER(32)
PLANNER(64)
