/* The wide kernels: from 17 rows of X to any number, up to the speed of the tensor cores.
 *
 *   four warps bring X and the weights into stages in shared memory, a ring of them
 *   eight or sixteen warps, each with its own rows of the item's and a part of K:
 *     for every few steps of 16 columns: decode and scale weights in registers while the tensor cores multiply those
 *     before
 *   the sums of all parts are added up in a fixed order; epilogue, store */
#pragma once

#include "../tile_scaled.cuh"
#include "product.cuh"
#include "wide_load.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T>
constexpr int row_tiles_of = T::rows / LPG_TILE_ROWS; /* of an item */

/* A lane's words of the stage of weights that is being decoded. */
template <class T>
struct stage_words {
  uint32_t word[T::row_tiles][4 * T::w_vectors];

  /* Loads what is needed first in the batch of steps of the stage that begins there. */
  __device__ void load(uint32_t stage, int step) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int v = 0; v < T::w_vectors; v++) {
        if (T::first_step(v) / T::batch == step / T::batch)
          load_words(stage + (r * T::w_vectors + v) * 512, &word[r][4 * v]);
      }
    }
  }
};

/* The warps that multiply. A step's weights are decoded while the tensor cores have the step before, and a stage is
 * waited for, and its first words are loaded, before the last step of the stage before is waited for. */
template <class T>
__device__ inline void multiply_items(const wide_args &a, const wide_work &w, barriers_of barriers, uint8_t *memory) {
  const int lane = threadIdx.x % 32, all_warp = same_in_warp(threadIdx.x / 32), g = lane / 4;
  const int warp = all_warp % T::team_warps, team = all_warp / T::team_warps;
  const wide_parts<T> parts(a, w);
  const int blocks = parts.blocks_of(team);
  const typename T::Decoder decoder(a.decoder, memory + a.plan.table, lane);
  const scaled_decoder<T::Bits> scaled(a.decoder);
  ring_place full(barriers.full(0), a.plan.x_stages, 16);
  ring_place x(wide_product<T>::place(barriers.base + a.plan.x_ring), a.plan.x_stages, wide_product<T>::stage_distance);
  ring_place codes(barriers.base + a.plan.w_ring, a.plan.w_stages, T::w_stage_bytes);
  constexpr lpg_wide_slot slot = T::slot();
  const uint32_t line_row = a.stage_groups * LPG_WIDE_LINES_BYTES; /* of a row tile's lines */
  ring_place slots(a.plan.scales, a.plan.slots, T::lines ? row_tiles_of<T> * line_row : slot.bytes);
  const uint32_t own_codes = warp * T::row_tiles * T::w_vectors * 512 + lane * 16;
  row_numbers_of<T> rows[T::row_tiles];
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    rows[r].set_centers(T::Codes::round(a.decoder.center), T::Codes::round(a.decoder.center));
  }
  constexpr int depth = wide_product<T>::depth;
  wide_product<T> product, before; /* before: of the parts before, added up */
  uint32_t operand[depth][T::batch][T::row_tiles][4];
  stage_words<T> words;
  uint32_t parity = 0, stage_before = 0;  /* 0: none */
  const bool ahead = a.plan.at_once == 1; /* the next item's first stage comes while the one before is multiplied */
  /* Blocks of columns of other teams. */
  const auto pass_blocks = [&](int count) {
    x.pass(count * (steps / T::x_steps));
    codes.pass(count * (steps / T::w_steps));
    parity ^= full.pass(count * (steps / T::x_steps));
    slots.pass(count * (steps / slot.steps));
  };
  int turn = 0;
  for (int item = w.first_item; item < w.items; item += w.stride, turn++) {
    for (int i = 0; i < team; i++) pass_blocks(1);
    if (ahead || blocks > 0) {
      wait_barrier(full.at, parity);
      words.load(codes.at + own_codes, 0);
    }
    float *const factors = (float *)(memory + a.plan.factors) + turn % 2 * LPG_WIDE_ROWS;
    if (lane < T::row_tiles * LPG_TILE_ROWS) {
      const int row = warp * T::row_tiles * LPG_TILE_ROWS + lane;
      factors[row] = blocks > 0 ? row_factor<T>(a, w.row_item(item) * T::rows + row) : 0.0f;
    }
    if (T::runs) before.clear();
    if (T::slots && !T::lines) {
      const uint8_t *exponents = memory + slots.at + slot.exponents;
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        rows[r].set_power(a.numbers, (const int8_t *)exponents + (warp * T::row_tiles + r) * LPG_TILE_ROWS, g);
      }
    }
    int left = blocks;
#pragma unroll 1
    for (int run = 0; run < parts.runs; run++) {
      product.clear();
#pragma unroll 1
      for (const int end = left - parts.blocks_of(team, run); left > end; left--) {
#pragma unroll
        for (int first = 0; first < steps; first += T::batch) {
          uint32_t(&weights)[T::batch][T::row_tiles][4] = operand[first / T::batch % depth];
#pragma unroll
          for (int step = first; step < first + T::batch; step++) {
#pragma unroll
            for (int r = 0; r < T::row_tiles; r++) {
              if (T::slots && step % T::Granule == 0) {
                const uint8_t *const numbers = memory + slots.at;
                const int granule = (warp * T::row_tiles + r) * slot.granules + step % slot.steps / T::Granule;
                if constexpr (T::lines) {
                  const uint32_t group = step % slot.steps * a.stage_groups / slot.steps;
                  const uint8_t *const lines =
                      numbers + (warp * T::row_tiles + r) * line_row + group * LPG_WIDE_LINES_BYTES;
                  rows[r].load(((const float4 *)lines)[g]);
                } else {
                  rows[r].load(scaled, numbers + granule * slot.scale_bytes,
                               numbers + slot.zeros + granule * slot.zero_bytes, g);
                }
              }
              const int unit = step % T::w_steps / T::unit_steps, pair = step % T::unit_steps * 2;
#pragma unroll
              for (int half = 0; half < 2; half++) {
                const uint32_t *unit_words = &words.word[r][unit * T::unit_words * 2 + half];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                  weights[step - first][r][half + 2 * i] = rows[r].weights(decoder, half, unit_words, pair + i);
                }
              }
            }
          }
          const int x_step = first % T::x_steps, next = first + T::batch;
          const uint32_t read_before = stage_before; /* by all batches but this */
          product.start(weights, x.at, x_step);
          if (next % T::w_steps == 0) codes.advance();
          if (next % slot.steps == 0) slots.advance();
          if (next % T::x_steps == 0) {
            const bool comes = next < steps || left > 1 || ahead;
            const uint32_t here = full.at, parity_here = parity;
            stage_before = full.at + 8;
            x.advance();
            parity ^= full.advance();
            if (T::teams > 1 && next == steps) pass_blocks(left > 1 ? T::teams - 1 : 0);
            wait_barrier(comes ? full.at : here, comes ? parity : parity_here); /* without a branch: see load() */
          }
          words.load(codes.at + own_codes, next % T::w_steps);
          product.wait();
          if (x_step == 0) {
            __syncwarp(); /* all lanes have read it */
            if (T::shares) {
              if (lane < w.share && read_before != 0) tell_block(read_before, w.share > 1 ? lane : w.rank);
            } else if (lane == 0 && read_before != 0) {
              arrive(read_before);
            }
          }
        }
      }
      product.finish();
      if (T::runs && run + 1 < parts.runs) before.add(product);
    }
    if (T::runs && parts.runs > 1 && a.plan.at_once == 1) product.add(before);
    __syncwarp();
    if (a.plan.at_once > 1) {
      if (lane == 0 && stage_before != 0) arrive(stage_before); /* teams go on from here at different stages */
      stage_before = 0;
      for (int i = team + T::teams * (blocks - 1) + 1; T::teams > 1 && i < parts.blocks(); i++) pass_blocks(1);
      bool stored = false;
      if constexpr (T::runs) {
        stored = parts.runs > 1;
        if (stored) store_two_parts<T>(a, w, item, before, product, factors, memory);
      }
      if (!stored) store_parts<T>(a, w, item, product, factors, memory);
    } else {
      bool stored = false;
      if constexpr (T::row_tiles * T::Tokens >= 256) stored = store_scaled<T>(a, w, item, product, factors, memory);
      if (!stored) store_item<T>(a, w, item, product, factors, memory);
    }
  }
}

enum { slots_are_filled = 2 }; /* the barrier of the block's warps that multiply */

template <class T>
__global__ void __launch_bounds__(T::threads, 1) wide_kernel(const __grid_constant__ wide_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const lpg_wide_plan &p = a.plan;
  let_next_start();
  const uint32_t base = shared_address(memory);
  const barriers_of barriers = {base};
  if (threadIdx.x == 0) barriers.init<T>(p);
  __syncthreads();
  if (T::shares && p.share > 1) { /* before others copy to this block, or arrive at its barriers */
    cluster_arrive();
    cluster_wait();
  }
  if (a.epilogue.device_alpha) wait_for_previous(); /* reads_product() reads it */
  const wide_work w(p, reads_product(a.epilogue));
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= T::warps) {
    give_registers_back<T::copy_registers>();
    load_items<T>(a, w, barriers, memory, warp - T::warps, lane);
    __syncwarp();
  } else {
    take_registers<T::registers>();
    if (T::slots && !T::lines) fill_slots<T>(a, memory + p.scales);
    T::Decoder::fill_table(a.decoder, memory + p.table, threadIdx.x, 32 * T::warps);
    threads_meet(slots_are_filled, 32 * T::warps);
    wait_for_previous();
    multiply_items<T>(a, w, barriers, memory);
  }
  if (T::shares && p.share > 1) { /* before others lose what they still copy to */
    cluster_arrive();
    cluster_wait();
  }
}

}  // namespace
}  // namespace lpg
