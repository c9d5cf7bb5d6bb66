/* The kernels before and behind the product: sums of X for what is left of zeros, and the sums of work tiles that
 * several CTAs share. */
#include "stripe_parts.h"

#include "../../cuda/cuda.h"
#include "../epilogue/store.cuh"
#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- sums of X ---- */

struct sums_of_x_args {
  const uint16_t *x;
  int64_t ldx, x_rows; /* x_rows: for which there is room */
  int m, k, units, scale_groups, bf16;
  float *sums;
  int unit_k;
};

/* A thread for a row of X and scale group. */
static __global__ void __launch_bounds__(128) sums_of_x_kernel(const sums_of_x_args a) {
  const int64_t at = (int64_t)blockIdx.x * 128 + threadIdx.x, groups = (int64_t)a.units * a.scale_groups;
  pdl_launch_next();
  pdl_wait();
  if (at >= groups * a.x_rows) return;
  const int group = (int)(at % groups), row = (int)(at / groups), each = a.unit_k / a.scale_groups;
  const int first = group * each, count = row < a.m ? min(a.k - first, each) : 0;
  const uint16_t *const from = a.x + row * a.ldx + first;
  float sum = 0.0f;
  for (int i = 0; i < count; i++) sum += a.bf16 ? bf16_x::widen(from[i]) : f16_x::widen(from[i]);
  a.sums[group * a.x_rows + row] = sum;
}

/* ---- partial sums ---- */

struct add_args {
  lpg_stripe_plan plan;
  int n, m;
  float factor;
  const float *partials;
  epilogue_args epilogue;
};

/* What store.cuh asks of a warp's sums: 16 rows of X by 32 rows of W. */
struct added {
  static constexpr bool integer_sums = false;
  static constexpr int row_tiles = LPG_STRIPE_ROW_TILES, TileM = LPG_PASS_ROWS, rows = row_tiles * LPG_TILE_ROWS;
  float sum[row_tiles][TileM / 8 * 4];
};

constexpr int adding_warps = 4;

/* The CTA that has the unit. */
__device__ inline int cta_of(const lpg_partition &stripes, int unit) {
  const int large = stripes.more * (stripes.each + 1);
  return unit < large ? (int)((unsigned)unit / (unsigned)(stripes.each + 1))
                      : stripes.more + (int)((unsigned)(unit - large) / (unsigned)stripes.each);
}

/* A warp adds up 16 rows of X by 32 rows of W, which one warp of the main kernel has multiplied. */
static __global__ void __launch_bounds__(32 * adding_warps) add_kernel(const __grid_constant__ add_args a) {
  __shared__ __align__(16) float all_sums[adding_warps][lpg_sums_bytes(LPG_PASS_ROWS, added::rows) / 4];
  __shared__ __align__(16) float factors[added::rows];
  const lpg_stripe_plan &p = a.plan;
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), passes = p.tile_m / LPG_PASS_ROWS;
  pdl_launch_next();
  pdl_wait();
  if (threadIdx.x < added::rows) factors[threadIdx.x] = a.factor;
  __syncthreads();
  const int job = blockIdx.x * adding_warps + warp, each = p.warps * passes;
  const int tile = (unsigned)job / (unsigned)each, in_tile = job - tile * each;
  if (tile >= p.n_tiles * p.m_tiles || !reads_product(a.epilogue)) return;
  const int first = cta_of(p.stripes, tile * p.units), last = cta_of(p.stripes, (tile + 1) * p.units - 1);
  if (first == last) return; /* one CTA has stored it */
  const int n_tile = (unsigned)tile / (unsigned)p.m_tiles, m_tile = tile - n_tile * p.m_tiles;
  const int of_warp = in_tile / passes, pass = in_tile - of_warp * passes;
  const tile_place place = {m_tile * p.tile_m + pass * LPG_PASS_ROWS, a.m, (n_tile * p.warps + of_warp) * added::rows,
                            0};
  if (place.m >= a.m || place.n >= a.n) return;
  const float4 *from = (const float4 *)a.partials + in_tile * (4 * 32) + lane;
  float4 four[4] = {};
#pragma unroll 2
  for (int cta = first; cta <= last; cta++) {
    const int begins = cta * p.stripes.each + min(cta, p.stripes.more); /* a CTA's first work tile is its part 0 */
    const int part = (unsigned)begins / (unsigned)p.units == tile ? 0 : 1;
    const float4 *const one = from + (int64_t)(2 * cta + part) * (lpg_stripe_partial(&p) / 4);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float4 v = one[i * 32];
      four[i] = make_float4(four[i].x + v.x, four[i].y + v.y, four[i].z + v.z, four[i].w + v.w);
    }
  }
  added sums;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float *const to = &sums.sum[i % 2][i / 2 * 4];
    to[0] = four[i].x;
    to[1] = four[i].y;
    to[2] = four[i].z;
    to[3] = four[i].w;
  }
  put_sums<added>(sums, all_sums[warp], lpg_sums_stride(added::rows), 0);
  __syncwarp();
  store_pass<added>(a, own_pass<added::rows>(a, all_sums[warp], factors, place), place.m);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_stripe_sums_of_x(const lpg_call *call, const lpg_stripe_plan *plan, float *sums) {
  const lpg::sums_of_x_args args = {(const uint16_t *)call->x,
                                    call->ldx,
                                    lpg_stripe_x_rows(plan),
                                    (int)call->problem.m,
                                    (int)call->problem.weights->desc.k,
                                    plan->units,
                                    plan->scale_groups,
                                    call->problem.x_type == LPGEMM_BF16,
                                    sums,
                                    lpg_stripe_k_of(call->problem.weights)};
  const int64_t all = (int64_t)plan->units * plan->scale_groups * args.x_rows;
  return lpg::launch_cluster((const void *)lpg::sums_of_x_kernel, dim3((unsigned)lpg_ceil_div(all, 128)), 1, 128, 0,
                             call->stream, args, call->device->clusters[1] > 0);
}

lpgemm_status_t lpgemm_i_cuda_stripe_add(const lpg_call *call, const lpg_stripe_plan *plan, float factor,
                                         const float *partials) {
  const lpg::add_args args = {*plan,    (int)call->problem.weights->desc.n, (int)call->problem.m, factor,
                              partials, lpg::make_epilogue(*call)};
  const int64_t jobs = (int64_t)plan->n_tiles * plan->m_tiles * plan->warps * (plan->tile_m / LPG_PASS_ROWS);
  return lpg::launch_cluster((const void *)lpg::add_kernel, dim3((unsigned)lpg_ceil_div(jobs, lpg::adding_warps)), 1,
                             32 * lpg::adding_warps, 0, call->stream, args, call->device->clusters[1] > 0);
}

lpgemm_status_t lpgemm_i_cuda_prepare_stripe(void) {
  LPG_TRY(lpg::allow_shared((const void *)lpg::sums_of_x_kernel, 0));
  return lpg::allow_shared((const void *)lpg::add_kernel, 0);
}
