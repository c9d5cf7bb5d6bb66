/* stripe: 17 rows of X and more by weights that are dequantised in registers and multiplied by mma.sync, with nothing
 * that GPUs of 8.0 do not have.
 *
 *   a ring of stages of 128 or 64 k in shared memory, filled by cp.async some stages ahead, across work tiles:
 *     X for all warps; codes and scales for the warp that copies them
 *   each warp, for each unit of the CTA's stripe:
 *     for each MMA step (16 k): load X by ldmatrix, dequantise, mma
 *     after each scale group: totals += scale * products (+ shift * sum of X); scaled weights add to the totals at once
 *     at the end of a whole work tile: epilogue; of a part of one: the sums go to the workspace */
#pragma once

#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"
#include "stripe_scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- to shared memory ---- */

/* A warp's copies: each a part of X, and the codes, scales and zeros of its own rows of W. What they need to know is
 * found once a work tile, since all warps wait meanwhile. */
template <class T>
struct unit_loader {
  static constexpr int panel_warps = T::Warps / T::panels, x_rows = T::TileM / panel_warps;
  const stripe_args &a;
  const x_matrix<2> x;
  const bool aligned;
  const int warp, lane;
  stripe_cursor at;
  const uint8_t *codes, *own_x; /* the lane's first piece of unit 0 */
  int64_t row_tile_bytes;       /* to the second row tile; 0 if it is beyond the matrix */
  int rows_of_x;                /* from the lane's first one on */
  stripe_piece piece[T::scale_pieces];

  __device__ unit_loader(const stripe_args &a, int first, int warp, int lane)
      : a(a), x(a.x, a.ldx, a.m, a.k), aligned(x.aligned()), warp(warp), lane(lane), at(first, a.plan.units) {
    set_tile();
  }

  __device__ int panel() const { return warp / panel_warps; }
  __device__ int x_row() const { return warp % panel_warps * x_rows; }
  __device__ int first_m(int n_tile) const { return (at.tile - n_tile * a.plan.m_tiles) * T::TileM; }

  __device__ void set_tile() {
    const int n_tile = stripe_n_tile(a.plan, at.tile), m = first_m(n_tile) + x_row() + lane / 8;
    const int row_tile = min((n_tile * T::Warps + warp) * T::row_tiles, a.row_tiles - 1);
    codes = a.codes + row_tile * a.row_bytes + lane * 16;
    row_tile_bytes = row_tile + 1 < a.row_tiles ? a.row_bytes : 0;
    own_x = (const uint8_t *)a.x + (m * a.ldx + panel() * 64 + lane % 8 * 8) * 2;
    rows_of_x = a.m - m;
    piece[0].set_rows(a, row_tile, lane);
    if constexpr (T::scale_pieces > 1) {
      if (a.scale_pieces > 32) piece[1].set_rows(a, row_tile, lane + 32);
    }
  }

  /* Whether all of X of the unit comes in pieces of 16 bytes: most do, and to copy less takes many instructions. */
  __device__ bool is_whole() const { return aligned && (at.unit + 1) * T::unit_k <= a.k; }

  /* X of such a unit. */
  __device__ void load_x(uint32_t to) const {
    const int row = lane / 8;
    const int64_t step = a.ldx * 8;
    const uint8_t *from = own_x + (int64_t)at.unit * (T::unit_k * 2);
    const uint32_t even = to + row * 128 + ((lane % 8 ^ row) << 4), odd = even ^ 64; /* rows 8 i; 8 i + 4 */
#pragma unroll
    for (int i = 0; i < x_rows; i += 4, from += step) {
      if (i < rows_of_x) copy16_async((i % 8 ? odd : even) + i * 128, from);
    }
  }

  /* whole: none of the unit's codes are beyond K. */
  __device__ void load_codes(uint32_t stage, bool whole) const {
    uint32_t to = stage + a.plan.codes + (warp * T::row_tiles * T::row_pieces + lane) * T::piece_bytes;
    if constexpr (T::piece_words == 2) {
      load_halves(to);
      return;
    }
    const int first = at.unit * T::pieces;
    const uint8_t *from = codes + (int64_t)first * 512;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++, from += row_tile_bytes, to += T::pieces * 512) {
#pragma unroll
      for (int v = 0; v < T::pieces; v++)
        copy16_async(to + v * 512, from + v * 512, whole || first + v < a.row_vectors);
    }
  }

  /* Of odd widths a unit is half of a tile, and begins or ends in the middle of a vector: its words come in halves of
   * vectors, one for each word of row g. Tiles have both units. */
  __device__ void load_halves(uint32_t to) const {
    const int first = at.unit * T::pieces; /* half of a vector */
    const uint8_t *even = codes + (int64_t)(first / 2) * 512 + first % 2 * 8;
    int64_t odd = first % 2 ? 512 - 8 : 8;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++, even += row_tile_bytes, to += T::pieces * 256) {
#pragma unroll
      for (int i = 0; i < T::pieces; i++) copy8_async(to + i * 256, even + i / 2 * 512 + (i % 2 ? odd : 0), true);
    }
  }

  __device__ void load_scales(uint32_t stage) const {
    const uint32_t scales = stage + a.plan.scales + warp * a.plan.warp_scales;
    piece[0].copy(at.unit, scales);
    if constexpr (T::scale_pieces > 1) {
      if (a.scale_pieces > 32) piece[1].copy(at.unit, scales);
    }
    if (T::may_shift && a.plan.shift) load_sums(stage + a.plan.sums_of_x);
  }

  /* Starts the copies of a unit and moves on to the next one. */
  __device__ void load(uint32_t stage) {
    const uint32_t x_to = stage + panel() * T::panel_bytes + x_row() * 128;
    if (is_whole()) {
      load_codes(stage, true);
      load_x(x_to);
    } else {
      const int m = first_m(stripe_n_tile(a.plan, at.tile)) + x_row();
      load_codes(stage, false);
      x.template load<x_rows>(x_to, m, at.unit * T::unit_k + panel() * 64, lane, aligned);
    }
    load_scales(stage);
    at.next(a.plan.units);
    if (at.unit == 0) set_tile();
  }

  __device__ void load_sums(uint32_t to) const {
    const int64_t x_rows_all = lpg_stripe_x_rows(&a.plan);
    const float *from =
        a.sums_of_x + (int64_t)at.unit * T::ScaleGroups * x_rows_all + first_m(stripe_n_tile(a.plan, at.tile));
    for (int i = threadIdx.x; i < T::ScaleGroups * T::TileM / 4; i += T::threads) {
      const int group = i / (T::TileM / 4), four = i % (T::TileM / 4);
      copy16_async(to + i * 16, from + group * x_rows_all + four * 4);
    }
  }
};

/* ---- one unit ---- */

/* A lane's packed words of a unit. */
template <class T>
struct unit_words {
  uint32_t word[T::row_tiles][T::words];

  __device__ void load_piece(uint32_t codes, int i) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const uint32_t from = codes + (r * T::pieces + i) * 32 * T::piece_bytes;
      if (T::piece_words == 2) {
        load_two_words(from, &word[r][2 * i]);
      } else {
        load_words(from, &word[r][4 * i]);
      }
    }
  }
};

template <class T>
struct stripe_centers {
  typename T::Dequantiser::rows row[T::row_tiles][2];

  __device__ void set(int r, float first, float second) {
    T::Dequantiser::set_center(row[r][0], T::X::round(first));
    T::Dequantiser::set_center(row[r][1], T::X::round(second));
  }
};

/* Adds the products of a scale group, scaled, to the totals, and clears them. sums_of_x: of the rows of X of this lane.
 */
template <class T>
__device__ inline void scale_group(const stripe_args &a, const stripe_group (&of)[T::row_tiles], const float *sums_of_x,
                                   stripe_sums<T> &products, stripe_sums<T> &totals) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
    for (int i = 0; i < T::x_tiles * 4; i++) {
      totals.sum[r][i] = fmaf(i % 4 < 2 ? of[r].scale.x : of[r].scale.y, products.sum[r][i], totals.sum[r][i]);
      products.sum[r][i] = 0.0f;
    }
  }
  if (T::may_shift && a.plan.shift) {
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
      const float2 sum = *(const float2 *)(sums_of_x + j * 8);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        float *const total = &totals.sum[r][j * 4];
        total[0] = fmaf(of[r].shift.x, sum.x, total[0]);
        total[1] = fmaf(of[r].shift.x, sum.y, total[1]);
        total[2] = fmaf(of[r].shift.y, sum.x, total[2]);
        total[3] = fmaf(of[r].shift.y, sum.y, total[3]);
      }
    }
  }
}

/* The lane's part of X of one step, for all rows of X: operand B. */
template <class T>
__device__ inline void load_x(uint32_t x, int step, uint32_t (&b)[T::x_tiles / 2][4]) {
  const uint32_t from = (x ^ step % 4 * 32) + step / 4 * T::panel_bytes;
#pragma unroll
  for (int i = 0; i < T::x_tiles / 2; i++) load_matrices(from + i * 2048, b[i]);
}

/* x: address of the lane's row of X for step 0; codes: of the lane's words. ahead: starts copies of a later unit. */
template <class T, class Ahead>
__device__ inline void multiply_unit(const stripe_args &a, const typename T::Dequantiser &dequantiser, uint32_t x,
                                     uint32_t codes, const stripe_scales<T> &scales, const float *sums_of_x,
                                     stripe_centers<T> &centers, stripe_sums<T> &totals, Ahead ahead) {
  constexpr int scales_step =
      T::Dequantiser::centered ? 0 : T::group_steps - 1; /* of a group: centers are needed first */
  unit_words<T> words;
  stripe_sums<T> products;
  stripe_group of[T::row_tiles];
  uint32_t b[2][T::x_tiles / 2][4];
  load_x<T>(x, 0, b[0]);
  scales.fill();
  products.clear();
#pragma unroll
  for (int step = 0; step < T::unit_steps; step++) {
#pragma unroll
    for (int i = 0; i < T::pieces; i++) {
      if (T::first_step(i) == step) words.load_piece(codes, i);
    }
    if (step + 1 < T::unit_steps) load_x<T>(x, step + 1, b[(step + 1) % 2]);
    if (step % T::group_steps == scales_step) {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        of[r] = scales.load(r, step / T::group_steps);
        if (T::Zeros && T::Dequantiser::centered) centers.set(r, of[r].center.x, of[r].center.y);
      }
    }
    const int unit = step / T::codes_of_unit_words, pair = step % T::codes_of_unit_words * 2;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      uint32_t w[4];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const uint32_t *word = &words.word[r][unit * T::unit_words * 2 + half];
        w[half] = dequantiser.decode(centers.row[r][half], word, pair);
        w[half + 2] = dequantiser.decode(centers.row[r][half], word, pair + 1);
      }
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) {
        float(&d)[4] = *(float(*)[4]) & products.sum[r][4 * j];
        T::X::mma::multiply(d, w, b[step % 2][j / 2][j % 2 * 2], b[step % 2][j / 2][j % 2 * 2 + 1]);
      }
    }
    if (step == 0) ahead();
    if (step % T::group_steps == T::group_steps - 1) {
      scale_group<T>(a, of, sums_of_x + step / T::group_steps * T::TileM, products, totals);
    }
  }
}

/* The lane's part of X of one step, for 64 rows of X from `first` on. */
template <class T>
__device__ inline void load_x(uint32_t x, int step, int first, uint32_t (&b)[4][4]) {
  const uint32_t from = (x ^ step % 4 * 32) + step / 4 * T::panel_bytes + first * 128;
#pragma unroll
  for (int i = 0; i < 4; i++) load_matrices(from + i * 2048, b[i]);
}

/* multiply_unit() of scaled weights: products of all units add up in the totals. X comes 64 rows at a time. */
template <class T, class Ahead>
__device__ inline void multiply_scaled(const stripe_args &a, const typename T::Dequantiser &dequantiser, uint32_t x,
                                       uint32_t codes, const stripe_scales<T> &scales,
                                       stripe_multiplier<T> (&multiplier)[T::row_tiles], stripe_centers<T> &centers,
                                       stripe_sums<T> &totals, Ahead ahead) {
  constexpr int parts = T::TileM / 64;
  unit_words<T> words;
  uint32_t b[2][4][4];
  load_x<T>(x, 0, 0, b[0]);
#pragma unroll
  for (int step = 0; step < T::unit_steps; step++) {
#pragma unroll
    for (int i = 0; i < T::pieces; i++) {
      if (T::first_step(i) == step) words.load_piece(codes, i);
    }
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      if (step % T::group_steps > 0) continue;
      multiplier[r].set(a, scales.packed_scales(r, step / T::group_steps));
      if constexpr (T::Zeros) {
        const uint32_t zeros = scales.packed_zeros(r, step / T::group_steps);
        T::Dequantiser::set_center(centers.row[r][0], T::X::small_integer(zeros & 255));
        T::Dequantiser::set_center(centers.row[r][1], T::X::small_integer(zeros >> 8));
      }
    }
    const int unit = step / T::codes_of_unit_words, pair = step % T::codes_of_unit_words * 2;
    uint32_t w[T::row_tiles][4];
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const uint32_t *word = &words.word[r][unit * T::unit_words * 2 + half];
#pragma unroll
        for (int i = 0; i < 2; i++)
          w[r][half + 2 * i] = multiplier[r].weights(dequantiser.decode(centers.row[r][half], word, pair + i), half);
      }
    }
#pragma unroll
    for (int part = 0; part < parts; part++) {
      const int at = step * parts + part, next = at + 1;
      if (next < T::unit_steps * parts) load_x<T>(x, next / parts, next % parts * 64, b[next % 2]);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
          float(&d)[4] = *(float(*)[4]) & totals.sum[r][4 * (part * 8 + j)];
          T::X::mma::multiply(d, w[r], b[at % 2][j / 2][j % 2 * 2], b[at % 2][j / 2][j % 2 * 2 + 1]);
        }
      }
      if (at == 0) ahead();
    }
  }
}

/* Takes the rows' powers of two off the sums. */
template <class T>
__device__ inline void take_powers_off(const stripe_multiplier<T> (&multiplier)[T::row_tiles], stripe_sums<T> &totals) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    const float2 inverse[2] = {multiplier[r].inverse(0), multiplier[r].inverse(1)};
#pragma unroll
    for (int i = 0; i < T::x_tiles * 4; i++) {
      totals.sum[r][i] = totals.sum[r][i] * inverse[i % 4 / 2].x * inverse[i % 4 / 2].y;
    }
  }
}

/* ---- outputs ---- */

/* Stores a whole work tile through a stage that nobody reads any more. */
template <class T>
__device__ inline void store_whole(const stripe_args &a, int tile, const stripe_sums<T> &totals, uint8_t *stage,
                                   const float *factors, int warp) {
  float *const sums = (float *)(stage + warp * lpg_sums_bytes(LPG_PASS_ROWS, T::rows));
  const tile_place place = stripe_place(a, tile, warp, T::rows);
  const output_pass<own_sums> pass = own_pass<T::rows>(a, sums, factors, place);
#pragma unroll 1
  for (int first = 0; first < min(T::TileM, place.m_end - place.m); first += LPG_PASS_ROWS) {
    put_sums<T>(totals, sums, lpg_sums_stride(T::rows), first);
    __syncwarp();
    store_pass<T>(a, pass, place.m + first);
    __syncwarp();
  }
}

/* Writes a warp's part of the partial sums of a work tile, in the layout of its registers. */
template <class T>
__device__ inline void store_partial(const stripe_args &a, int which, const stripe_sums<T> &totals, int warp,
                                     int lane) {
  float4 *const to = (float4 *)(a.partials + (int64_t)(blockIdx.x * 2 + which) * lpg_stripe_partial(&a.plan)) +
                     warp * (T::row_tiles * T::x_tiles * 32) + lane;
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
      const float *sum = &totals.sum[r][4 * j];
      to[(j * T::row_tiles + r) * 32] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    }
  }
}

/* ---- the kernel ---- */

template <class T>
__global__ void __launch_bounds__(T::threads, T::at_once) stripe_kernel(const __grid_constant__ stripe_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const lpg_stripe_plan &p = a.plan;
  pdl_launch_next();
  pdl_wait();
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), t = lane % 4;
  const int first = first_of(p.stripes, blockIdx.x), count = count_of(p.stripes, blockIdx.x);
  float *const factors = (float *)(memory + p.factors);
  const bool reads = reads_product(a.epilogue);
  if (threadIdx.x < T::rows) factors[threadIdx.x] = T::may_shift ? 1.0f : a.scale_data.factor;
  stripe_sums<T> totals;
  if (!reads) {
    totals.clear();
    __syncthreads();
    for (int tile = blockIdx.x; tile < p.n_tiles * p.m_tiles; tile += gridDim.x) {
      store_whole<T>(a, tile, totals, memory + p.ring, factors, warp);
    }
    return;
  }
  const uint32_t ring = shared_address(memory + p.ring);
  stripe_cursor at(first, p.units);
  unit_loader<T> loader(a, first, warp, lane);
  for (int s = 0; s < p.stages - 1; s++) {
    if (s < count) loader.load(ring + s * p.stage_bytes);
    commit_copies();
  }
  T::Dequantiser::fill_table(a.dequantiser, memory, threadIdx.x, T::threads);
  const typename T::Dequantiser dequantiser(a.dequantiser, memory, lane);
  stripe_centers<T> centers;
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) centers.set(r, a.dequantiser.center, a.dequantiser.center);
  /* ldmatrix: lanes 0 to 7 pass rows 0 to 7 of X at the first 8 k of a step, the next eight at the others, then rows 8
   * to 15. */
  const int x_row = lane / 16 * 8 + lane % 8;
  const uint32_t lane_x = x_row * 128 + ((lane / 8 % 2) ^ lane % 8) * 16;
  const uint32_t lane_codes = p.codes + (warp * T::row_tiles * T::row_pieces + lane) * T::piece_bytes;
  int which = 0; /* of the CTA's two partials */
  int stage = 0, next = p.stages - 1, to_load = count - next;
#pragma unroll 1
  for (int left = count; left > 0; which = 1) { /* a work tile, or what the CTA has of it */
    const int units = min(p.units - at.unit, left);
    uint8_t *own = nullptr;
    stripe_multiplier<T> multiplier[T::row_tiles];
    if constexpr (T::has_powers) {
      const int row_tile = (stripe_n_tile(p, at.tile) * T::Warps + warp) * T::row_tiles;
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) multiplier[r].set_powers(a, row_tile + r, lane / 4);
    }
    totals.clear();
#pragma unroll 1
    for (int i = 0; i < units; i++) {
      if (p.stages == 2) {
        wait_copies<0>();
      } else if (p.stages == 3) {
        wait_copies<1>();
      } else {
        wait_copies<2>();
      }
      __syncthreads(); /* the stage is complete, and all warps have read the one that is filled next */
      const uint32_t from = keep(ring + stage * p.stage_bytes);
      own = memory + p.ring + stage * p.stage_bytes;
      const stripe_scales<T> scales = {a, own + p.scales + warp * p.warp_scales,
                                       (stripe_group *)(memory + p.table) + warp * stripe_scales<T>::entries, lane};
      const auto ahead = [&] {
        if (to_load-- > 0) loader.load(ring + next * p.stage_bytes);
        commit_copies();
      };
      if constexpr (T::Scaled) {
        multiply_scaled<T>(a, dequantiser, from + lane_x, from + lane_codes, scales, multiplier, centers, totals,
                           ahead);
      } else {
        multiply_unit<T>(a, dequantiser, from + lane_x, from + lane_codes, scales,
                         (const float *)(own + p.sums_of_x) + 2 * t, centers, totals, ahead);
      }
      stage = stage + 1 == p.stages ? 0 : stage + 1;
      next = next + 1 == p.stages ? 0 : next + 1;
    }
    if constexpr (T::has_powers) take_powers_off<T>(multiplier, totals);
    if (units == p.units) {
      __syncthreads(); /* all warps have read the stage */
      store_whole<T>(a, at.tile, totals, own, factors, warp);
    } else {
      store_partial<T>(a, which, totals, warp, lane);
    }
    left -= units;
    at.unit = 0;
    at.tile++;
  }
}

}  // namespace
}  // namespace lpg
