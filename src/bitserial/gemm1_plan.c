/* The planner of gemm1. There is one way to cut a problem. */
#include "gemm1_plan.h"

#include <math.h>

#include "../kernels/operand/limits.h"
#include "../kernels/plan/rates.h"

/* Below 33 rows of X images never pay; refusing here keeps lpgemm_workspace_size() small. */
enum { LEAST_ROWS = 33 };

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const char *reason = lpgemm_i_integers_refuse(problem);
  (void)self, (void)device;
  if (reason) return reason;
  return problem->m < LEAST_ROWS ? "it makes images of the operands, which takes 33 rows to pay" : NULL;
}

static int make(const lpg_problem *problem, const lpg_device *device, lpg_gemm1_plan *plan) {
  const lpg_packed *weights = problem->weights;
  const int64_t stage_k = 1024, tiles = lpg_ceil_div(problem->m, LPG_GEMM1_TILE_M);
  lpg_gemm1_plan p = {0};
  p.p = weights->bits;
  p.q = lpg_bits(problem->x_type);
  p.k_stages = (int32_t)lpg_ceil_div(weights->desc.k, stage_k);
  p.n_tiles = (int32_t)lpg_ceil_div(weights->desc.n, LPG_GEMM1_TILE_N);
  p.cluster = tiles > 1 && device->clusters[2] > 0 ? 2 : 1;
  p.m_tiles = (int32_t)lpg_ceil_div(tiles, p.cluster);
  p.clusters = p.cluster == 2 ? device->clusters[2] : device->sms > 0 ? device->sms : 1;
  const int32_t most = lpg_gemm1_most_tiles(&p);
  if (device->shared_memory < LPG_GEMM1_SHARED || (p.n_tiles > 0 && most < 1)) return 0;
  const int32_t chunks = most > 0 ? (p.n_tiles + most - 1) / most : 1;
  p.chunk_tiles = (p.n_tiles + chunks - 1) / chunks;
  *plan = p;
  return 1;
}

/* Microseconds of a chunk of so many work tiles of rows. */
static double chunk_us(const lpg_gemm1_plan *p, int32_t n_tiles, double sms) {
  const int64_t rounds = ((int64_t)n_tiles * p->m_tiles + p->clusters - 1) / p->clusters;
  const double bytes = (double)(n_tiles * lpg_gemm1_w_bytes(p));
  return 3.0 + bytes / (sms * 10000.0) + (double)rounds * (p->p * p->q * p->k_stages * 0.75 + 2.5);
}

static double estimate(const lpg_problem *problem, const lpg_device *device, const lpg_gemm1_plan *p) {
  const double sms = device->sms > 0 ? device->sms : 1.0;
  const double x = (double)problem->m * (double)problem->weights->desc.k, alu = lpgemm_i_alu_speed(device);
  const int32_t chunks = p->chunk_tiles > 0 ? p->n_tiles / p->chunk_tiles : 0;
  const int32_t left = p->n_tiles - chunks * p->chunk_tiles;
  return 3.0 + x * (1.0 + 0.15 * p->q) / (sms * 27000.0 * alu) +
         (chunks * chunk_us(p, p->chunk_tiles, sms) + (left > 0 ? chunk_us(p, left, sms) : 0.0)) / alu;
}

static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  (void)least, (void)state;
  if (i > 0 || !make(problem, device, plan)) return LPG_NO_MORE;
  *ns = estimate(problem, device, plan) * 1000.0;
  return LPG_CANDIDATE;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const lpg_gemm1_plan *p = plan;
  const int64_t tiles = (int64_t)p->chunk_tiles * p->m_tiles;
  (void)self, (void)ns;
  launch->tile_n = LPG_GEMM1_TILE_N;
  launch->tile_m = LPG_GEMM1_TILE_M * p->cluster;
  launch->multicast = p->cluster;
  launch->clusters = (int32_t)(tiles < p->clusters ? tiles : p->clusters);
  launch->work_tiles = tiles;
  launch->passes = p->chunk_tiles > 0 ? (p->n_tiles + p->chunk_tiles - 1) / p->chunk_tiles : 0;
  launch->threads = 32 * (LPG_GEMM1_WARPS + 4);
  launch->shared_bytes = LPG_GEMM1_SHARED;
  launch->stages = LPG_GEMM1_STAGES;
  launch->us = estimate(problem, device, p);
}

/* Bytes of the images of X and of the largest chunk of weights. */
static size_t workspace(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  lpg_gemm1_plan plan;
  (void)self;
  if (!make(problem, device, &plan)) return 0;
  return (size_t)lpg_gemm1_workspace(&plan, lpg_gemm1_most_tiles(&plan));
}

const lpg_planner lpgemm_i_gemm1_planner = {.refuses = refuses,
                                            .cut = cut,
                                            .finish = finish,
                                            .workspace = workspace,
                                            .no_plan = "the rows are too long for its workspace",
                                            .plan_bytes = sizeof(lpg_gemm1_plan),
                                            .mma = LPG_WGMMA_B1,
                                            .dequantises = LPG_DEQUANT_NEVER};
