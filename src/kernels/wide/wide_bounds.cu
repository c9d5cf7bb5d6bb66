/* Bounds of rows whose zeros may be larger than their scales say, as exponents of a largest scale that would do. */
#include "../../cuda/cuda.h"
#include "../weights_host.cuh"
#include "wide_limits.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct wide_bounds_args {
  number_section scale, zero;                /* of the upper level; values NULL: all 1, or 0 */
  float most, scale_most, zero_most;         /* the largest magnitudes of values, and of numbers of the lower level */
  int scale_groups, zero_groups, multiplied; /* multiplied: zeros are, by scales */
  int top;
  int8_t *out;
};

/* The largest magnitudes that a section has in rows g and g + 8 of a row tile, of every eighth part of its groups. */
__device__ inline float2 largest_pair(const number_section &s, int groups, int row_tile, int g) {
  float2 most = make_float2(0.0f, 0.0f);
  const uint8_t *const values = s.values + (int64_t)row_tile * s.row_bytes;
  with_reader(s.type, [&](auto read) {
#pragma unroll 4
    for (int group = threadIdx.x / 8; group < groups; group += blockDim.x / 8) {
      const float2 two = read(values + group * s.slot_bytes, g);
      most = make_float2(fmaxf(most.x, fabsf(two.x)), fmaxf(most.y, fabsf(two.y)));
    }
  });
  return most;
}

/* A block of threads has a row tile. A scale that is a power of two below the exponent's bound, by values of at most
 * 2^top, stays below the weights' bound: in fp16's range, where scales by values do. */
static __global__ void __launch_bounds__(128) wide_bounds_kernel(const __grid_constant__ wide_bounds_args a) {
  __shared__ int scale_bits[LPG_TILE_ROWS], zero_bits[LPG_TILE_ROWS]; /* fp32 of one sign are in order as integers */
  const int g = threadIdx.x % 8;
  if (threadIdx.x < LPG_TILE_ROWS) scale_bits[threadIdx.x] = zero_bits[threadIdx.x] = 0;
  __syncthreads();
  const auto note = [&](const number_section &s, int groups, float factor, int *bits) {
    const float2 most = largest_pair(s, groups, blockIdx.x, g);
    atomicMax(&bits[g], __float_as_int(most.x * factor));
    atomicMax(&bits[g + 8], __float_as_int(most.y * factor));
  };
  if (a.scale.values) note(a.scale, a.scale_groups, a.scale_most, scale_bits);
  if (a.zero.values) note(a.zero, a.zero_groups, a.zero_most, zero_bits);
  __syncthreads();
  if (threadIdx.x >= LPG_TILE_ROWS) return;
  const float scale = a.scale.values ? __int_as_float(scale_bits[threadIdx.x]) : 1.0f;
  const float zero = __int_as_float(zero_bits[threadIdx.x]);
  const float most = a.multiplied ? (a.most + zero) * scale : a.most * scale + zero;
  const bool finite = most > 0.0f && most < INFINITY;
  a.out[blockIdx.x * LPG_TILE_ROWS + threadIdx.x] = (int8_t)(finite ? min(max(ilogbf(most) - a.top, -127), 127) : 0);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_wide_bounds(const lpg_call *call, int top, int8_t *exponents) {
  const lpg_plan &plan = *call->problem.plan;
  const lpgemm_weight_desc_t &d = plan.desc;
  if (call->skip_product || plan.row_tiles == 0 || d.k == 0) return LPGEMM_SUCCESS;
  lpg::numbers_args numbers = {};
  lpg::wide_bounds_args args = {};
  lpg::add_sections(*call, 1, 1, numbers);
  const auto upper = [&](lpg::number_role role, lpg::number_role super, lpgemm_dtype_t type, lpg::number_section &to,
                         int &groups, float &lower) {
    const bool two_levels = numbers.which[super] >= 0;
    if (numbers.which[role] >= 0) to = numbers.section[numbers.which[two_levels ? super : role]];
    groups = (int)(two_levels ? plan.super : plan.group).count;
    lower = two_levels ? (float)lpg::largest_value(type, NULL) : 1.0f;
  };
  upper(lpg::role_scale, lpg::role_super_scale, d.scale_type, args.scale, args.scale_groups, args.scale_most);
  upper(lpg::role_zero, lpg::role_super_zero, d.zero_type, args.zero, args.zero_groups, args.zero_most);
  args.most = (float)lpg::largest_value(d.type, d.codebook);
  args.multiplied = d.zero != LPGEMM_ZERO_MINIMUM;
  args.top = top;
  args.out = exponents;
  return lpg::launch((const void *)lpg::wide_bounds_kernel, dim3((unsigned)plan.row_tiles), 128, 0, call->stream, args);
}

lpgemm_status_t lpgemm_i_cuda_prepare_wide_bounds(void) {
  return lpg::allow_shared((const void *)lpg::wide_bounds_kernel, 0);
}
