/* gemv: up to 16 rows of X by weights of 1 to 8 bits, dequantised in registers and multiplied by mma.sync, at the
 * speed at which the packed weights can be read from memory.
 *
 *   K is split over the CTAs of a cluster, rows of W (in super tiles of 16 or 32) over clusters. X, or one phase of it,
 *   is in shared memory; weights go from memory to registers, a k block (256 k) ahead. Then, for every round of super
 *   tiles and every phase of X, each warp takes its even range of (super tile, k block):
 *     for every MMA step (16 k): dequantise, mma; words that are used up are replaced by the next block's
 *     after every scale group: sums += scale * products (+ shift * sum of X)
 *   Partial sums of the warps, then of the CTAs, are added in a fixed order. Then the epilogue. */
#pragma once

#include "../operand/x_widen.cuh"
#include "../prim/pdl.cuh"
#include "gemv_gather.cuh"
#include "gemv_levels.cuh"
#include "gemv_reduce.cuh"
#include "gemv_scales.cuh"
#include "gemv_stream.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- X ---- */

/* Starts to copy `blocks` k blocks of X, from first_block on, to shared memory: a warp copies all rows of a block, 8
 * k a lane. Beyond the matrix X is zero. Each cluster begins with another block (rotation), so that they do not all
 * read the same part of L2 at once. */
template <class T>
__device__ inline void stage_x(const gemv_args &a, int first_block, int blocks, int rotation, uint8_t *to) {
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), rows = a.plan.x_rows;
  const bool aligned = (uintptr_t)a.x % 16 == 0 && a.ldx % 8 == 0;
  const int shift = (unsigned)rotation % (unsigned)blocks;
  for (int i = warp; i < blocks; i += T::warps) {
    const int block = i + shift < blocks ? i + shift : i + shift - blocks;
    const int64_t k = (int64_t)(first_block + block) * block_k + lane * 8;
    const uint16_t *from = (const uint16_t *)a.x + k;
    uint8_t *out = to + block * (block_k * 2) + lane * 16;
    if (aligned && k + 8 <= a.k) {
#pragma unroll 4
      for (int row = 0; row < rows; row++)
        copy16_async(shared_address(out) + row * a.plan.x_stride, from + row * a.ldx);
      continue;
    }
#pragma unroll 1
    for (int row = 0; row < rows; row++, from += a.ldx, out += a.plan.x_stride) {
      const auto at = [&](int j) { return k + j < a.k ? (uint32_t)from[j] : 0u; };
      *(uint4 *)out = make_uint4(at(0) | at(1) << 16, at(2) | at(3) << 16, at(4) | at(5) << 16, at(6) | at(7) << 16);
    }
  }
}

/* The same for 8-bit X, which is widened in registers; the loads of four rows of a block are in flight together. Its
 * loops are not unrolled: code that other calls skip makes them slower. */
template <class T>
__device__ inline void stage_x_8bit(const gemv_args &a, int first_block, int blocks, uint8_t *to) {
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), rows = a.plan.x_rows;
#pragma unroll 1
  for (int block = warp; block < blocks; block += T::warps) {
    const int64_t k = (int64_t)(first_block + block) * block_k + lane * 8;
    const uint8_t *from = (const uint8_t *)a.x + k;
    uint8_t *out = to + block * (block_k * 2) + lane * 16;
    const bool whole = (uintptr_t)a.x % 8 == 0 && a.ldx % 8 == 0 && k + 8 <= a.k;
#pragma unroll 1
    for (int row = 0; row < rows; row += 4) {
      uint2 four[4] = {};
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if (whole && row + i < rows) four[i] = *(const uint2 *)(from + i * a.ldx);
      }
#pragma unroll 1
      for (int i = 0; i < 4 && row + i < rows; i++, from += a.ldx, out += a.plan.x_stride) {
        uint2 bytes = i < 2 ? (i == 0 ? four[0] : four[1]) : (i == 2 ? four[2] : four[3]);
        if (!whole) {
          const auto at = [&](int j) { return k + j < a.k ? (uint32_t)from[j] << 8 * (j % 4) : 0u; };
          bytes = make_uint2(at(0) | at(1) | at(2) | at(3), at(4) | at(5) | at(6) | at(7));
        }
        *(uint4 *)out = widen_eight(a.x_type, bytes, a.k - k);
      }
    }
  }
}

/* Sums of X over each scale group, TileM floats a scale group; rows beyond x_rows repeat the last. */
template <class T>
__device__ inline void sum_x(const gemv_args &a, int blocks, const uint8_t *x, float *sums) {
  const int rows = T::Codes == 0 ? T::TileM : a.plan.x_rows; /* two levels: what is beyond x_rows does not matter */
  for (int i = threadIdx.x; i < blocks * T::scale_groups * rows; i += T::threads) {
    const int x_row = i % rows, scale_group = i / rows, row = min(x_row, a.plan.x_rows - 1);
    const uint4 *eight = (const uint4 *)(x + row * a.plan.x_stride) + scale_group * T::ScaleSteps * 2;
    float sum = 0.0f;
#pragma unroll 2
    for (int j = 0; j < T::ScaleSteps * 2; j++) {
      const uint32_t two[4] = {eight[j].x, eight[j].y, eight[j].z, eight[j].w};
#pragma unroll
      for (int v = 0; v < 4; v++) sum += T::X::widen((uint16_t)two[v]) + T::X::widen((uint16_t)(two[v] >> 16));
    }
    sums[T::Codes == 0 ? i : scale_group * T::TileM + x_row] = sum;
  }
}

/* ---- one k block ---- */

/* Adds the products of a scale group, scaled, to the totals, and clears them. */
template <class T>
__device__ inline void scale_products(const scale_table &table, int scale_group, int g, const float *sums,
                                      accumulators<T> &products, accumulators<T> &totals) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    const int at = (r * T::scale_groups + scale_group) * 8 + g;
    const float2 scale = table.scale[at];
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
      float(&total)[4] = totals.sum[r][j];
      const float(&product)[4] = products.sum[r][j];
      total[0] = fmaf(scale.x, product[0], total[0]);
      total[1] = fmaf(scale.x, product[1], total[1]);
      total[2] = fmaf(scale.y, product[2], total[2]);
      total[3] = fmaf(scale.y, product[3], total[3]);
    }
    if (T::Shifted && table.has_shift) {
      const float2 shift = table.shift[at];
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) {
        const float2 sum = *(const float2 *)(sums + scale_group * T::TileM + j * 8);
        float(&total)[4] = totals.sum[r][j];
        total[0] = fmaf(shift.x, sum.x, total[0]);
        total[1] = fmaf(shift.x, sum.y, total[1]);
        total[2] = fmaf(shift.y, sum.x, total[2]);
        total[3] = fmaf(shift.y, sum.y, total[3]);
      }
    }
  }
  products.clear();
}

/* The same by the table of two levels. */
template <class T>
__device__ inline void scale_products(const level_entry<T::Shifted> (&entries)[T::row_tiles], accumulators<T> &products,
                                      accumulators<T> &totals) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float scale = i < 2 ? entries[r].scale.x : entries[r].scale.y;
        totals.sum[r][j][i] = fmaf(scale, products.sum[r][j][i], totals.sum[r][j][i]);
      }
    }
  }
  products.clear();
}

template <class T>
struct row_centers {
  typename T::Dequantiser::rows row[T::row_tiles][2];
};

/* A scale group's part of the table, and the centres of its rows. */
template <class T>
__device__ inline void take_group(const level_stream<T> &table, int scale_group,
                                  level_entry<T::Shifted> (&entries)[T::row_tiles], row_centers<T> &centers) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    entries[r] = table.at(r, scale_group);
    if constexpr (T::Shifted) {
      T::Dequantiser::set_bias(centers.row[r][0], entries[r].bias[0]);
      T::Dequantiser::set_bias(centers.row[r][1], entries[r].bias[1]);
    }
  }
}

/* The centres of a scale group's rows, where zeros differ. */
template <class T>
__device__ inline void set_centers(const scale_table &table, int scale_group, int g, row_centers<T> &centers) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    const uint32_t two = table.center[(r * T::scale_groups + scale_group) * 8 + g];
    T::Dequantiser::set_center(centers.row[r][0], __byte_perm(two, 0, 0x1010));
    T::Dequantiser::set_center(centers.row[r][1], __byte_perm(two, 0, 0x3232));
  }
}

/* Multiplies one k block. x[j]: address of the lane's row of X for load_matrices(); sums: the sums of X from this
 * block on (rows 2 t and 2 t + 1 of X). Words that are used up are replaced by those of the next block. */
template <class T, class Table>
__device__ inline void multiply_block(const scales_args &a, const typename T::Dequantiser &dequantiser,
                                      const weight_stream<T> &stream, block_words<T> &words,
                                      const uint32_t (&x)[T::x_tiles], const float *sums, const Table &table, int g,
                                      row_centers<T> &centers, accumulators<T> &totals) {
  accumulators<T> products;
  products.clear();
  level_entry<T::Shifted> entries[T::row_tiles]; /* only of two levels */
  uint32_t b[2][T::x_tiles][4];                  /* two 32-k pieces of X: one in use, the next one loading */
#pragma unroll
  for (int j = 0; j < T::x_tiles; j++) load_matrices(x[j], b[0][j]);
#pragma unroll
  for (int step = 0; step < steps; step++) {
    if (step % 2 == 0 && step + 2 < steps) {
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) load_matrices(x[j] + (step + 2) * 32, b[(step / 2 + 1) % 2][j]);
    }
    if constexpr (T::Codes != 0) {
      if (step % T::ScaleSteps == 0) take_group<T>(table, step / T::ScaleSteps, entries, centers);
    } else if (T::Shifted && T::Dequantiser::centered && step % T::ScaleSteps == 0 && a.mode != zero_fixed) {
      set_centers<T>(table, step / T::ScaleSteps, g, centers);
    }
    const int unit = step / T::unit_steps, pair = step % T::unit_steps * 2;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      uint32_t w[4];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const uint32_t *codes = &words.word[r][unit * T::unit_words * 2 + half];
        w[half] = dequantiser.decode(centers.row[r][half], codes, pair);
        w[half + 2] = dequantiser.decode(centers.row[r][half], codes, pair + 1);
      }
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) {
        const uint32_t(&fragment)[4] = b[step / 2 % 2][j];
        T::X::mma::multiply(products.sum[r][j], w, fragment[step % 2 * 2], fragment[step % 2 * 2 + 1]);
      }
    }
#pragma unroll
    for (int v = 0; v < T::Bits; v++) {
      if (T::last_step(v) == step) stream.load(words, v);
    }
    if (step % T::ScaleSteps != T::ScaleSteps - 1) continue;
    if constexpr (T::Codes != 0) {
      scale_products<T>(entries, products, totals);
    } else {
      scale_products<T>(table, step / T::ScaleSteps, g, sums, products, totals);
    }
  }
}

/* All blocks of a run with scales of two levels. block_x, block_sums: of the first. */
template <class T>
__device__ inline void multiply_run(int run, const gemv_args &a, const typename T::Dequantiser &dequantiser,
                                    weight_stream<T> &weights, level_stream<T> &levels, block_words<T> &words,
                                    uint32_t (&block_x)[T::x_tiles], const float *block_sums, int lane,
                                    row_centers<T> &centers, accumulators<T> &totals) {
#pragma unroll 1
  for (; run > 0; run--) {
    levels.decode();
    levels.load(weights);
    if (T::Shifted) levels.add_shifts(block_sums, lane, totals);
    multiply_block<T>(a.scale_data, dequantiser, weights, words, block_x, block_sums, levels, lane / 4, centers,
                      totals);
    if (weights.end_block()) {
      levels.next_block();
    } else {
      levels.find_run(weights);
    }
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) block_x[j] += block_k * 2;
    block_sums += T::scale_groups * T::TileM;
  }
}

/* ---- the kernel ---- */

template <class T>
__global__ void __launch_bounds__(T::threads, T::Half ? 2 : 1) gemv_kernel(const __grid_constant__ gemv_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const lpg_gemv_plan &p = a.plan;
  pdl_launch_next();
  if (a.epilogue.device_alpha) pdl_wait(); /* reads_product() reads it */
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), g = lane / 4, t = lane % 4;
  const int rank = p.split_k > 1 ? blockIdx.x % p.split_k : 0,
            cluster = p.split_k > 1 ? blockIdx.x / p.split_k : blockIdx.x;
  const int first_tile = first_of(p.n_part, cluster), tiles = count_of(p.n_part, cluster);
  const int first_block = first_of(p.k_part, rank), blocks = reads_product(a.epilogue) ? count_of(p.k_part, rank) : 0;
  uint8_t *const partials = memory + p.slots;
  float *const sums = (float *)(memory + p.sums);

  if (p.split_k > 1) cluster_arrive(); /* others may write to this CTA's shared memory from now on */
  const work w(p, T::warps, warp, tiles, blocks);
  cursor at = {};
  if (blocks > 0) at.start_turn(w, 0);
  weight_stream<T> weights(a, w, at, first_tile * T::row_tiles, first_block, lane);
  std::conditional_t<T::Codes != 0, level_stream<T>, scale_stream<T>> scale_data(
      a, w, at, first_tile * T::row_tiles, first_block, lane, memory + p.warp + warp * p.warp_bytes);
  if constexpr (T::Codes != 0) scale_data.start(weights);
  const bool gathers = T::gathers && a.order && blocks > 0;
  if (gathers) {
    weights.prefetch(); /* gathering takes the time in which they come, and the registers */
    copy_order<T>(a, first_block, blocks, memory);
  }
  block_words<T> words = {};
  if (!gathers) weights.fill(words);
  if constexpr (T::Codes == 0) scale_data.copy_next();
  pdl_wait();
  const auto x_of = [&](int turn) { return memory + p.x + (p.phase_blocks < blocks && turn % 2 ? p.x_place : 0); };
  const auto stage_phase = [&](int phase, int turn) {
    const int first = first_block + phase * w.most_blocks;
    if (T::X::exponent == 5 && lpg_bytes(a.x_type) == 1) {
      stage_x_8bit<T>(a, first, w.phase_blocks(phase), x_of(turn));
    } else {
      stage_x<T>(a, first, w.phase_blocks(phase), cluster, x_of(turn));
    }
    commit_copies();
  };
  if (gathers) {
    gather_x<T>(a, first_block, blocks, memory);
  } else if (blocks > 0) {
    stage_phase(0, 0); /* before the weights, so that it does not queue behind them */
  }
  if (gathers) weights.fill(words);
  if constexpr (T::Codes != 0) scale_data.find_run(weights);
  T::Dequantiser::fill_table(a.dequantiser, memory, threadIdx.x, T::threads);
  const typename T::Dequantiser dequantiser(a.dequantiser, memory, lane);
  row_centers<T> centers;
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    T::Dequantiser::set_center(centers.row[r][0], T::X::round(a.dequantiser.center));
    T::Dequantiser::set_center(centers.row[r][1], T::X::round(a.dequantiser.center));
  }

  for (int round = 0; round * p.round_tiles < tiles; round++) {
    for (int phase = 0; phase < w.phases; phase++) {
      const int turn = round * w.phases + phase;
      uint8_t *const x = x_of(turn);
      if (turn > 0) at.start_turn(w, turn);
      if (turn == 0 || w.phases > 1) {
        wait_copies<0>();
        if constexpr (T::Codes == 0) scale_data.waited = true;
        __syncthreads(); /* X is there, and no warp reads the phase before any more */
        if (w.phases > 1 && turn + 1 < w.turns) stage_phase(phase + 1 < w.phases ? phase + 1 : 0, turn + 1);
        if (T::Shifted) {
          sum_x<T>(a, w.phase_blocks(phase), x, sums);
          __syncthreads();
        }
      }
      uint32_t lane_x[T::x_tiles];
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) {
        lane_x[j] = keep(shared_address(x) + min(j * 8 + lane % 8, p.x_rows - 1) * p.x_stride + lane / 8 * 16);
      }
      for (; at.run > 0; at.next_run(w)) {
        accumulators<T> totals;
        totals.clear();
        uint32_t block_x[T::x_tiles];
#pragma unroll
        for (int j = 0; j < T::x_tiles; j++) block_x[j] = lane_x[j] + at.block * (block_k * 2);
        const float *block_sums = sums + at.block * T::scale_groups * T::TileM + (T::Codes != 0 ? 0 : 2 * t);
        if constexpr (T::Codes != 0) {
          multiply_run<T>(at.run, a, dequantiser, weights, scale_data, words, block_x, block_sums, lane, centers,
                          totals);
        } else {
          for (int left = at.run; left > 0; left -= T::chunk) {
            scale_data.take();
            scale_table table = scale_data.table;
#pragma unroll 1
            for (int i = min(left, T::chunk); i > 0; i--) {
              multiply_block<T>(a.scale_data, dequantiser, weights, words, block_x, block_sums, table, g, centers,
                                totals);
              weights.end_block();
              table.to_next_block(T::pairs);
#pragma unroll
              for (int j = 0; j < T::x_tiles; j++) block_x[j] += block_k * 2;
              block_sums += T::scale_groups * T::TileM;
            }
          }
        }
        float4 *const partial = (float4 *)(partials + (at.tile - round * p.round_tiles + warp) * p.slot_bytes);
        store_partial<T>(partial, lane, p.x_rows, T::Shifted ? 1.0f : a.scale_data.factor, phase > 0, totals);
      }
    }
    /* Peer partials have two areas in turn: other CTAs may still read those of the round before. */
    uint8_t *peers = memory + p.peers + round % 2 * p.split_k * p.peer_bytes;
    __syncthreads();
    if (p.split_k > 1) {
      if (round == 0) cluster_wait(); /* all CTAs of the cluster run */
      send_sums<T>(p, w, round, rank, partials, peers);
      cluster_arrive();
      cluster_wait();
    }
    store_outputs<T>(a, w, round, first_tile, rank, partials, peers);
    if (w.tiles > (round + 1) * p.round_tiles) __syncthreads(); /* before the partials are overwritten */
  }
}

}  // namespace
}  // namespace lpg
