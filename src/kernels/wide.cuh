/* The wide kernels: from 17 rows of X to any number, up to the speed of the tensor cores.
 *
 *   two warps bring X, and one the weights, into rings of stages in shared memory
 *   eight warps, each with its own 32 rows of the item's 256:
 *     for every 16 columns: decode and scale weights in registers while the tensor cores multiply the 16 before
 *   the slices of K are added up through the cluster's shared memory in a fixed order; epilogue, store */
#pragma once

#include "product.cuh"
#include "wide_load.cuh"
#include "wide_numbers.cuh"
#include "wide_store.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What a row tile's weights are decoded with, for a granule of columns: of rows g and g + 8. */
template <class T>
struct row_numbers_of {
  uint32_t scale[2], rest[2];
  typename T::Decoder::rows rows[2];

  __device__ void set_center(float center) {
    T::Decoder::set_center(rows[0], T::X::round(center));
    T::Decoder::set_center(rows[1], T::X::round(center));
  }

  __device__ void load(const numbers_args &a, const scale_table &table, int at) {
    const uint32_t two = table.scale[at];
    scale[0] = __byte_perm(two, 0, 0x1010);
    scale[1] = __byte_perm(two, 0, 0x3232);
    if (!T::General) return;
    const uint32_t left = table.rest[at];
    rest[0] = __byte_perm(left, 0, 0x1010);
    rest[1] = __byte_perm(left, 0, 0x3232);
    if (!T::Decoder::centered || a.mode != zero_per_group) return;
    const uint32_t centers = table.center[at];
    T::Decoder::set_center(rows[0], __byte_perm(centers, 0, 0x1010));
    T::Decoder::set_center(rows[1], __byte_perm(centers, 0, 0x3232));
  }

  /* d to the scaled weight. step, shift: what of a weight the scale multiplies is step * d + shift. */
  __device__ uint32_t scaled(uint32_t d, int half, uint32_t step, uint32_t shift) const {
    if (!T::General) return T::X::multiply(d, scale[half]);
    const uint32_t value = T::Decoder::centered ? T::X::fma(d, step, shift) : d;
    return T::X::fma(value, scale[half], T::X::multiply(value, rest[half]));
  }
};

/* The warps that multiply. */
template <class T>
__device__ inline void multiply_items(const wide_args &a, const wide_work &w, ring x, ring weights, uint8_t *memory,
                                      uint32_t barriers) {
  const int thread = threadIdx.x, lane = thread % 32, warp = same_in_warp(thread / 32), g = lane / 4;
  const typename T::Decoder decoder(a.decoder, memory + a.plan.table, lane);
  scale_stream<T> numbers(a, w, warp, lane, memory + a.plan.warp + warp * a.plan.warp_bytes);
  const uint32_t step_pair = T::X::round(a.numbers.step), shift_pair = T::X::round(a.numbers.fixed_shift);
  row_numbers_of<T> rows[T::row_tiles];
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) rows[r].set_center(a.decoder.center);
  typename T::Product product;
  uint32_t operand[2][T::row_tiles][4];
  uint32_t word[T::row_tiles][4 * T::w_vectors];
  int pass = 0, turn = 0;
  numbers.copy_next();
  for (int item = w.first_item; item < w.items; item += w.stride, turn++) {
    float *const factors = (float *)(memory + a.plan.factors) + turn % 2 * LPG_WIDE_ROWS;
    factors[thread] = w.blocks > 0 ? row_factor(a, w.row_item(item) * LPG_WIDE_ROWS + thread) : 0.0f;
    product.clear();
    for (int left = w.blocks; left > 0; left -= T::chunk) {
      numbers.take();
      scale_table table = numbers.table;
#pragma unroll 1
      for (int block = min(left, T::chunk); block > 0; block--) {
        const bool first_block = left == w.blocks && block == min(left, T::chunk);
#pragma unroll
        for (int step = 0; step < steps; step++) {
          const int x_step = step % T::x_steps, w_step = step % T::w_steps;
          if (w_step == 0) weights.wait_full();
          const uint32_t stage =
              weights.memory + weights.stage * T::w_stage_bytes + warp * T::row_tiles * T::w_vectors * 512 + lane * 16;
#pragma unroll
          for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
            for (int v = 0; v < T::w_vectors; v++) {
              if (T::first_step(v) == w_step) load_words(stage + (r * T::w_vectors + v) * 512, &word[r][4 * v]);
            }
            if (step % T::Granule == 0) rows[r].load(a.numbers, table, (r * T::granules + step / T::Granule) * 8 + g);
            const int unit = w_step / T::unit_steps, pair = w_step % T::unit_steps * 2;
#pragma unroll
            for (int half = 0; half < 2; half++) {
              const uint32_t *codes = &word[r][unit * T::unit_words * 2 + half];
#pragma unroll
              for (int i = 0; i < 2; i++) {
                operand[step % 2][r][half + 2 * i] =
                    rows[r].scaled(decoder.decode(rows[r].rows[half], codes, pair + i), half, step_pair, shift_pair);
              }
            }
          }
          if (x_step == 0) {
            x.wait_full();
            fence_for_tensor_cores();
          }
          product.multiply(operand[step % 2], x.memory + x.stage * T::x_stage_bytes, x_step, lane);
          /* The step before is done now. */
          if (x_step == 0 && !(step == 0 && first_block)) release_before(x, lane);
          if (w_step == 0 && !(step == 0 && first_block)) release_before(weights, lane);
          if (x_step == T::x_steps - 1) x.advance();
          if (w_step == T::w_steps - 1) weights.advance();
        }
        table.to_next_block(T::pairs);
      }
    }
    product.finish();
    if (w.blocks > 0) {
      release_before(x, lane);
      release_before(weights, lane);
    }
    store_item<T>(a, w, item, product, factors, memory, barriers + sum_barriers, pass);
  }
}

template <class T>
__global__ void __launch_bounds__(T::threads, 1) wide_kernel(const __grid_constant__ wide_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const lpg_wide_plan &p = a.plan;
  const wide_work w(p, reads_product(a.epilogue));
  const uint32_t base = shared_address(memory);
  const ring x(base + p.x_ring, base + x_barriers, p.x_stages);
  const ring weights(base + p.w_ring, base + w_barriers, p.w_stages);
  if (threadIdx.x == 0) {
    for (int i = 0; i < LPG_WIDE_MOST_STAGES; i++) {
      init_barrier(x.full + 8 * i, 64);
      init_barrier(x.empty + 8 * i, LPG_WIDE_WARPS);
      init_barrier(weights.full + 8 * i, T::Product::load_arrivals);
      init_barrier(weights.empty + 8 * i, LPG_WIDE_WARPS);
    }
    for (int i = 0; i < 2; i++) init_barrier(base + sum_barriers + 8 * i, LPG_WIDE_WARPS * p.slices);
    fence_barriers();
  }
  T::Decoder::fill_table(a.decoder, memory + p.table, threadIdx.x, T::threads);
  __syncthreads();
  if (p.slices > 1) { /* before others arrive at this block's barriers */
    cluster_arrive();
    cluster_wait();
  }
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= LPG_WIDE_WARPS) {
    give_registers_back<T::Product::few_registers>();
    if (warp < LPG_WIDE_WARPS + 2) {
      load_x<T>(a, w, x, warp - LPG_WIDE_WARPS, lane);
    } else if (warp == LPG_WIDE_WARPS + 2) {
      load_weights<T>(a, w, weights, lane);
    }
    wait_copies<0>();
  } else {
    take_registers<T::Product::wide_registers>();
    multiply_items<T>(a, w, x, weights, memory, base);
  }
  if (p.slices > 1) { /* before others lose what they still write to */
    cluster_arrive();
    cluster_wait();
  }
}

}  // namespace
}  // namespace lpg
