/* stripe: 17 rows of X and more by weights that are dequantised in registers and multiplied by mma.sync, with nothing
 * that GPUs of 8.0 do not have.
 *
 *   a ring of stages of 64 k for each of two teams of four warps, filled by cp.async some slabs ahead, across the ends
 * of work tiles, with an mbarrier for full and one for empty; X is for all warps of the team, codes and scales are for
 * the warp that copies them each warp, for its team's slabs of each unit of the CTA's stripe: where a scale group
 * begins: sums *= scale before / scale (+ shift / scale * sum of X) for each MMA step (16 k): load X by ldmatrix,
 * dequantise, mma at the end of a work tile, or of a part of one: sums *= scale; teams add theirs; epilogue, or to the
 * workspace */
#pragma once

#include "../prim/barrier.cuh"
#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"
#include "stripe_load.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- scales on the sums ---- */

/* What was read from memory before is read again, not kept in registers. */
__device__ inline void read_again() { asm volatile("" ::: "memory"); }

/* Who a warp is. */
struct stripe_warp {
  int team, own, lane; /* own: number in the team */

  /* The two warps that have the same rows of W meet. Barrier 0 is the CTA's. */
  __device__ void meet_other() const { threads_meet(1 + own, 64); }
};

/* A warp's sums in units of the scale of the group at hand, so that one set of registers does: where the next group
 * begins, they are multiplied by the ratio of both scales. That stays in the range of fp32 while all scales are between
 * 2^-40 and 2^40. For others they are scaled and kept in the workspace instead, and begin anew. */
template <class T>
struct scaled_sums {
  stripe_sums<T::row_tiles, T::x_tiles> in_units;
  float4 *scales_of_lane; /* of rows g and g + 8 of two row tiles, twice, in shared memory: registers are short */
  bool has_kept;
  int which; /* of the CTA's work tiles: 0 the first, 1 another */

  __device__ void begin(int of) {
    clear_sums(in_units.sum);
    has_kept = false;
    which = of;
  }

  __device__ void get_scales(float (&scale)[T::row_tiles][2]) const {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r += 2) {
      const float4 four = scales_of_lane[r / 2 * 32];
      scale[r][0] = four.x;
      scale[r][1] = four.y;
      scale[r + 1][0] = four.z;
      scale[r + 1][1] = four.w;
    }
  }

  /* The lane's first four. */
  __device__ float4 *kept(const stripe_args &a, const stripe_warp &w) const {
    return (float4 *)(a.kept + lpg_stripe_place(&a.plan, blockIdx.x, w.team, which)) +
           w.own * (T::row_tiles * T::x_tiles * 32) + w.lane;
  }

  template <class Use>
  __device__ void each_four(Use use) {
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) use(r, j, *(float(*)[4]) & in_units.sum[r][4 * j]);
    }
  }

  /* Takes the units off. */
  __device__ void finish(const stripe_args &a, const stripe_warp &w) {
    const float4 *const from = kept(a, w);
    float scale[T::row_tiles][2];
    get_scales(scale);
    each_four([&](int r, int j, float(&sum)[4]) {
      float4 old = {};
      if (has_kept) old = from[(j * T::row_tiles + r) * 32];
      sum[0] = fmaf(sum[0], scale[r][0], old.x);
      sum[1] = fmaf(sum[1], scale[r][0], old.y);
      sum[2] = fmaf(sum[2], scale[r][1], old.z);
      sum[3] = fmaf(sum[3], scale[r][1], old.w);
    });
  }

  /* Keeps the sums, and what is left of the zeros of a group, in the workspace. */
  __device__ void keep_scaled(const stripe_args &a, const stripe_warp &w, const stripe_scales<T> &scales, int group,
                              bool shifts, const float *sums_of_x) {
    float4 *const place = kept(a, w);
    float scale[T::row_tiles][2];
    get_scales(scale);
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const float2 shift = shifts ? scales.load(r, group).shift : make_float2(0.0f, 0.0f);
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) {
        const float *const sum = &in_units.sum[r][4 * j];
        float4 *const at = &place[(j * T::row_tiles + r) * 32];
        float4 old = {};
        float2 x = {};
        if (has_kept) old = *at;
        if (shifts) x = *(const float2 *)(sums_of_x + 8 * j);
        read_again();
        *at = make_float4(
            fmaf(shift.x, x.x, fmaf(sum[0], scale[r][0], old.x)), fmaf(shift.x, x.y, fmaf(sum[1], scale[r][0], old.y)),
            fmaf(shift.y, x.x, fmaf(sum[2], scale[r][1], old.z)), fmaf(shift.y, x.y, fmaf(sum[3], scale[r][1], old.w)));
        read_again();
      }
    }
    clear_sums(in_units.sum);
    has_kept = true;
  }

  /* A scale group begins. first: of the work tile, or of this part of it. Scales are read twice, since registers are
   * short. */
  __device__ void regroup(const stripe_args &a, const stripe_warp &w, const stripe_scales<T> &scales, int group,
                          bool first, const float *sums_of_x) {
    constexpr float most = 0x1p40f, most_ratio = 0x1p80f;
    const bool shifts = T::Zeros && a.plan.shift;
    float scale[T::row_tiles][2], ratio[T::row_tiles][2], shift[T::row_tiles][2];
    bool leaves = false;
    get_scales(scale); /* of no meaning if it is the first */
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const stripe_group of = scales.load(r, group);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const float now = half ? of.scale.y : of.scale.x, inverse = reciprocal(now);
        if (first) scale[r][half] = now;
        float &to_now = ratio[r][half];
        to_now = scale[r][half] * inverse;
        if (scale[r][half] == now) {
          to_now = 1.0f;
        } else {
          leaves |= !(fabsf(now) <= most && fabsf(now) >= 1.0f / most);
          leaves |= !(fabsf(to_now) <= most_ratio && fabsf(to_now) >= 1.0f / most_ratio);
        }
        if (T::Zeros) {
          const float rest = half ? of.shift.y : of.shift.x;
          shift[r][half] = rest == 0.0f ? 0.0f : rest * inverse;
          leaves |= !(fabsf(shift[r][half]) < most);
        }
      }
    }
    if (__any_sync(0xffffffffu, leaves)) {
      keep_scaled(a, w, scales, group, shifts, sums_of_x);
    } else {
      each_four([&](int r, int, float(&sum)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) sum[i] *= ratio[r][i / 2];
      });
      if (shifts) {
        each_four([&](int r, int j, float(&sum)[4]) {
          const float2 x = *(const float2 *)(sums_of_x + 8 * j);
          sum[0] = fmaf(shift[r][0], x.x, sum[0]);
          sum[1] = fmaf(shift[r][0], x.y, sum[1]);
          sum[2] = fmaf(shift[r][1], x.x, sum[2]);
          sum[3] = fmaf(shift[r][1], x.y, sum[3]);
        });
      }
    }
    read_again();
#pragma unroll
    for (int r = 0; r < T::row_tiles; r += 2) {
      const float2 low = scales.load(r, group).scale, high = scales.load(r + 1, group).scale;
      scales_of_lane[r / 2 * 32] = make_float4(low.x, low.y, high.x, high.y);
    }
  }
};

/* ---- one slab ---- */

/* The centers of a warp's rows. Where they differ they stand in shared memory, since registers are short, and the
 * dequantiser's constants are made of them each time. */
template <class T>
struct stripe_centers {
  static constexpr bool differ = T::Zeros && T::Dequantiser::centered;
  typename T::Dequantiser::rows all;
  uint32_t of_lane; /* the lane's own, of rows g and g + 8, a row tile every 128 bytes */

  __device__ void set(const stripe_scales<T> &scales, int group) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const float2 center = scales.load(r, group).center;
      store_word(of_lane + r * 128, T::X::round_two(center.x, center.y));
    }
  }

  /* For the two rows of a row tile. */
  __device__ uint32_t load(int r) const { return differ ? load_word(of_lane + r * 128) : 0; }
  __device__ typename T::Dequantiser::rows get(uint32_t both_rows, int half) const {
    if (!differ) return all;
    typename T::Dequantiser::rows own;
    T::Dequantiser::set_center(own, __byte_perm(both_rows, 0, half ? 0x3232 : 0x1010));
    return own;
  }
};

/* What a warp holds of a slab at a time: operand B of a step, and a unit of the dequantiser's words of each row tile.
 * Each is loaded again as soon as it has been used for the last time, for the next step or slab. */
template <class T>
struct slab_operands {
  uint32_t b[T::x_tiles / 2][4], word[T::row_tiles][2];

  /* 16 rows of X. x: the lane's row of X. */
  __device__ void load_x(uint32_t x, int step, int i) { load_matrices_here((x ^ step * 32) + i * 2048, b[i]); }
  /* codes: the lane's words. */
  __device__ void load_unit(uint32_t codes, int r, int unit) {
    load_two(codes + (r * T::vectors + unit / 2) * 512 + unit % 2 * 8, word[r]);
  }
};

/* One step. next: the stage of the next one. */
template <class T>
__device__ inline void multiply_step(const typename T::Dequantiser &dequantiser, const stripe_centers<T> &centers,
                                     int step, uint32_t next, uint32_t lane_x, uint32_t lane_codes,
                                     slab_operands<T> &operands, scaled_sums<T> &sums) {
  const int in_unit = step % T::unit_steps, next_step = (step + 1) % T::steps;
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    const uint32_t both_rows = centers.load(r);
    uint32_t weights[4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const auto rows = centers.get(both_rows, half);
      weights[half] = dequantiser.decode(rows, &operands.word[r][half], in_unit * 2);
      weights[half + 2] = dequantiser.decode(rows, &operands.word[r][half], in_unit * 2 + 1);
    }
    if (in_unit == T::unit_steps - 1) operands.load_unit(next + lane_codes, r, next_step / T::unit_steps);
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
      float(&d)[4] = *(float(*)[4]) & sums.in_units.sum[r][4 * j];
      const uint32_t *b = &operands.b[j / 2][j % 2 * 2];
      T::X::mma::multiply(d, weights, b[0], b[1]);
      if (r == T::row_tiles - 1 && j % 2) operands.load_x(next + lane_x, next_step, j / 2);
    }
  }
}

/* ---- outputs ---- */

/* A team's half of the rows of X of both teams' sums; what it has of the other half goes to the other team. own, other:
 * the warp's shared memory for sums, and that of the other team's. */
template <class T>
__device__ inline void add_teams(const stripe_warp &w, const stripe_sums<T::row_tiles, T::x_tiles> &sums,
                                 stripe_sums<T::row_tiles, T::own_tiles> &half, float4 *own, const float4 *other) {
  const bool upper = w.team == 1;
#pragma unroll
  for (int j = 0; j < T::own_tiles; j++) {
    if (j > 0) w.meet_other();
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const float *low = &sums.sum[r][j * 4], *high = low + T::own_tiles * 4;
      float *const to = &half.sum[r][j * 4], send[4] = {};
#pragma unroll
      for (int i = 0; i < 4; i++) {
        send[i] = upper ? low[i] : high[i];
        to[i] = upper ? high[i] : low[i];
      }
      own[r * 32 + w.lane] = make_float4(send[0], send[1], send[2], send[3]);
    }
    w.meet_other();
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const float4 got = other[r * 32 + w.lane];
      float *const to = &half.sum[r][j * 4];
      to[0] += got.x;
      to[1] += got.y;
      to[2] += got.z;
      to[3] += got.w;
    }
  }
  w.meet_other();
}

/* Stores a team's share of a whole work tile through shared memory. */
template <class T>
__device__ inline void store_whole(const stripe_args &a, const stripe_warp &w, int tile,
                                   const stripe_sums<T::row_tiles, T::own_tiles> &sums, float *own,
                                   const float *factors) {
  tile_place place = stripe_place(a, tile, w.own);
  place.m += w.team * T::own_tiles * 8;
#pragma unroll 1
  for (int first = 0; first < T::own_tiles * 8 && place.m < place.m_end;
       first += LPG_PASS_ROWS, place.m += LPG_PASS_ROWS) {
    tile_place at = place;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r += 2, at.n += LPG_STRIPE_STORED_ROWS) {
      if (at.n < a.n) store_some(a, *(const stripe_sums<2, T::own_tiles> *)&sums.sum[r], first, own, factors, at);
    }
  }
}

/* Writes a team's share of the partial sums of a work tile, in the layout of its registers. */
template <class T>
__device__ inline void store_partial(const stripe_args &a, const stripe_warp &w, int which,
                                     const stripe_sums<T::row_tiles, T::own_tiles> &sums) {
  float4 *const to = (float4 *)(a.kept + lpg_stripe_place(&a.plan, blockIdx.x, 0, which)) +
                     (w.own * T::x_tiles + w.team * T::own_tiles) * (T::row_tiles * 32) + w.lane;
#pragma unroll
  for (int j = 0; j < T::own_tiles; j++) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const float *sum = &sums.sum[r][4 * j];
      to[(j * T::row_tiles + r) * 32] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    }
  }
}

/* ---- the kernel ---- */

/* Shared memory of a CTA, as its threads see it. */
struct stripe_memory {
  uint8_t *all;
  uint32_t ring, barriers;
  float *factors;
};

/* What a warp that multiplies does. first, units: of the stripe. */
template <class T>
__device__ inline void multiply_stripe(const stripe_args &a, const stripe_warp &w, int first, int units,
                                       const stripe_memory &memory, float *own_sums) {
  const lpg_stripe_plan &p = a.plan;
  const int warp = w.team * LPG_STRIPE_TEAM + w.own;
  const typename T::Dequantiser dequantiser(a.dequantiser, memory.all, w.lane);
  stripe_centers<T> centers;
  T::Dequantiser::set_center(centers.all, T::X::round(a.dequantiser.center));
  centers.of_lane = shared_address(own_sums) + 1024 + w.lane * 4; /* behind the scales */
  /* ldmatrix: lanes 0 to 7 pass rows 0 to 7 of X at the first 8 k of a step, the next eight at the others, then rows 8
   * to 15. */
  const int x_row = w.lane / 16 * 8 + w.lane % 8;
  const uint32_t lane_x = x_row * 128 + ((w.lane / 8 % 2) ^ w.lane % 8) * 16;
  const uint32_t lane_codes = p.codes + (w.own * T::row_tiles * T::vectors * 32 + w.lane) * 16;
  const uint32_t ring = memory.ring + w.team * p.stages * p.stage_bytes;
  scaled_sums<T> sums;
  sums.scales_of_lane = (float4 *)own_sums + w.lane;
  sums.begin(0);
  stripe_cursor at(first, p.units, w.team);
  const int all = units * LPG_STRIPE_TEAM_SLABS;
  int slabs = all;         /* to go */
  int stage = 0, turn = 0; /* turn of the ring: its lowest bit */
  slab_loader<T> loader(a, shared_address(memory.all + p.pieces), first, w.team, w.own, w.lane);
  for (int i = 0; i < p.stages - 1; i++) {
    if (i < slabs) loader.load(ring + i * p.stage_bytes, stage_full(p, memory.barriers, w.team, i));
  }
  wait_barrier_80(stage_full(p, memory.barriers, w.team, 0), 0);
  slab_operands<T> operands;
#pragma unroll
  for (int i = 0; i < T::x_tiles / 2; i++) operands.load_x(ring + lane_x, 0, i);
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) operands.load_unit(ring + lane_codes, r, 0);
#pragma unroll 1
  while (slabs > 0) {
    const uint32_t from = ring + stage * p.stage_bytes, barriers = stage_full(p, memory.barriers, w.team, 0);
    const uint8_t *const own = memory.all + p.ring + (w.team * p.stages + stage) * p.stage_bytes;
    const stripe_scales<T> scales = {a, own + p.scales,
                                     (stripe_group *)(memory.all + p.table) + warp * stripe_scales<T>::entries,
                                     w.own * T::row_tiles, w.lane};
    const bool begins_part = slabs == all || at.begins_tile(); /* of the work tile */
    const bool begins =
        begins_part ||
        (a.regroups && (a.group_mask == 0 || (at.begins_unit() && (at.slab & a.group_mask) < stripe_unit_slabs)));
    const int next = stage + 1 == p.stages ? 0 : stage + 1;
    const uint32_t next_from = ring + next * p.stage_bytes;
    if (begins) scales.fill();
#pragma unroll
    for (int step = 0; step < T::steps; step++) {
      if (step % T::group_steps == 0 && begins) {
        const int group = step / T::group_steps;
        if (centers.differ) centers.set(scales, group);
        const float *sums_of_x = (const float *)(own + p.sums_of_x) + group * T::TileM + 2 * (w.lane % 4);
        sums.regroup(a, w, scales, group, begins_part && step == 0, sums_of_x);
      }
      if (step == T::steps - 1) {
        __syncwarp();
        if (w.lane == 0) arrive(barriers + stage * 16 + 8); /* all that it has is in registers */
        if (next == 0) turn ^= 1;
        if (slabs > 1) wait_barrier_80(barriers + next * 16, turn);
      }
      if (step == 0 && slabs >= p.stages) { /* to the stage of the slab before */
        const int before = stage == 0 ? p.stages - 1 : stage - 1;
        wait_barrier_80(barriers + before * 16 + 8, stage == 0 ? turn ^ 1 : turn);
        loader.load(ring + before * p.stage_bytes, barriers + before * 16);
      }
      multiply_step<T>(dequantiser, centers, step, step < T::steps - 1 ? from : next_from, lane_x, lane_codes, operands,
                       sums);
    }
    const bool ends_tile = at.ends_tile(p.units);
    slabs--;
    if (ends_tile || slabs == 0) {
      sums.finish(a, w);
      stripe_sums<T::row_tiles, T::own_tiles> share;
      const int to_other = (w.team ? -1 : 1) * LPG_STRIPE_TEAM * lpg_stripe_warp_sums() / 4;
      add_teams<T>(w, sums.in_units, share, (float4 *)own_sums, (const float4 *)(own_sums + to_other));
      if (ends_tile && (sums.which || first_of(p.stripes, blockIdx.x) % p.units == 0)) {
        store_whole<T>(a, w, at.tile, share, own_sums, memory.factors);
      } else {
        store_partial<T>(a, w, sums.which, share);
      }
      sums.begin(1);
    }
    at.next(p.units);
    stage = next;
  }
}

template <class T>
__global__ void __launch_bounds__(LPG_STRIPE_THREADS, 1) stripe_kernel(const __grid_constant__ stripe_args a) {
  extern __shared__ __align__(1024) uint8_t shared[];
  const lpg_stripe_plan &p = a.plan;
  pdl_launch_next();
  pdl_wait();
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32);
  const stripe_warp w = {warp / LPG_STRIPE_TEAM, warp % LPG_STRIPE_TEAM, lane};
  const stripe_memory memory = {shared, shared_address(shared + p.ring),
                                shared_address(shared + p.factors + LPG_STRIPE_STORED_ROWS * 4),
                                (float *)(shared + p.factors)};
  float *const own_sums = (float *)(shared + p.sums + warp * lpg_stripe_warp_sums());
  const int first = first_of(p.stripes, blockIdx.x), units = count_of(p.stripes, blockIdx.x);
  if (threadIdx.x < LPG_STRIPE_STORED_ROWS) memory.factors[threadIdx.x] = T::Zeros ? 1.0f : a.scale_data.factor;
  if (threadIdx.x < LPG_STRIPE_TEAMS * p.stages) {
    init_barrier(stage_full(p, memory.barriers, 0, threadIdx.x), LPG_STRIPE_TEAM * 32);
    init_barrier(stage_empty(p, memory.barriers, 0, threadIdx.x), LPG_STRIPE_TEAM);
  }
  T::Dequantiser::fill_table(a.dequantiser, shared, threadIdx.x, LPG_STRIPE_THREADS);
  __syncthreads();
  if (!reads_product(a.epilogue)) {
    stripe_sums<T::row_tiles, T::own_tiles> zero;
    clear_sums(zero.sum);
    for (int tile = blockIdx.x; tile < p.n_tiles * p.m_tiles; tile += gridDim.x) {
      store_whole<T>(a, w, tile, zero, own_sums, memory.factors);
    }
  } else {
    multiply_stripe<T>(a, w, first, units, memory, own_sums);
  }
}

}  // namespace
}  // namespace lpg
