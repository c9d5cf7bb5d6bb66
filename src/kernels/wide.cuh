/* The wide kernels: from 17 rows of X to any number, up to the speed of the tensor cores.
 *
 *   four warps bring X and the weights into stages in shared memory, a ring of them
 *   eight or sixteen warps, each with its own rows of the item's:
 *     for every 16 columns: decode and scale weights in registers while the tensor cores multiply the 16 before
 *   the slices of K are added up through the cluster's shared memory in a fixed order; epilogue, store */
#pragma once

#include "product.cuh"
#include "tile_store.cuh"
#include "wide_load.cuh"
#include "wide_numbers.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What a row tile's weights are decoded with, for a granule of columns: of rows g and g + 8. */
template <class T>
struct row_numbers_of {
  uint32_t scale[2], rest[2];
  uint32_t power[2]; /* by which scales of X's type are multiplied, one after the other: pairs, for rows g and g + 8 */
  typename T::Decoder::rows rows[2];

  __device__ void set_center(float center) {
    T::Decoder::set_center(rows[0], T::X::round(center));
    T::Decoder::set_center(rows[1], T::X::round(center));
  }

  /* From a row tile's exponents. */
  __device__ void set_power(const numbers_args &a, const int8_t *exponents, int g) {
    int e[2] = {0, 0};
    if (!a.scale_on_rows) {
      e[0] = taken_power<T>(a, exponents[g]);
      e[1] = taken_power<T>(a, exponents[g + 8]);
    }
    const auto bits = [](int e) { return (uint32_t)(T::X::bias + e) << T::X::mantissa; };
    power[0] = bits(e[0] / 2) | bits(e[1] / 2) << 16;
    power[1] = bits(e[0] - e[0] / 2) | bits(e[1] - e[1] / 2) << 16;
  }

  __device__ void load(const uint32_t *slot, int g) {
    const uint32_t two = T::X::multiply(T::X::multiply(slot[g], power[0]), power[1]);
    scale[0] = __byte_perm(two, 0, 0x1010);
    scale[1] = __byte_perm(two, 0, 0x3232);
  }

  /* The general form; no branches: what is under way on the tensor cores must not be cut in two. */
  __device__ void load(const scale_table &table, int at) {
    const uint32_t two = table.scale[at], left = table.rest[at];
    scale[0] = __byte_perm(two, 0, 0x1010);
    scale[1] = __byte_perm(two, 0, 0x3232);
    rest[0] = __byte_perm(left, 0, 0x1010);
    rest[1] = __byte_perm(left, 0, 0x3232);
    if (!T::Decoder::centered) return;
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

/* A lane's words of the stage of weights that is being decoded. */
template <class T>
struct stage_words {
  uint32_t word[T::row_tiles][4 * T::w_vectors];

  /* Loads what is needed first at a step of the stage. */
  __device__ void load(uint32_t stage, int step) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int v = 0; v < T::w_vectors; v++) {
        if (T::first_step(v) == step) load_words(stage + (r * T::w_vectors + v) * 512, &word[r][4 * v]);
      }
    }
  }
};

/* The warps that multiply. A step's weights are decoded while the tensor cores have the step before, and a stage is
 * waited for, and its first words are loaded, before the last step of the stage before is waited for. */
template <class T>
__device__ inline void multiply_items(const wide_args &a, const wide_work &w, barriers_of barriers, uint8_t *memory) {
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), g = lane / 4;
  const typename T::Decoder decoder(a.decoder, memory + a.plan.table, lane);
  scale_stream<T> numbers(a, w, warp, lane, memory + a.plan.warp + warp * a.plan.warp_bytes);
  const uint32_t step_pair = T::X::round(a.numbers.step), shift_pair = T::X::round(a.numbers.fixed_shift);
  ring_place full(barriers.full(0), a.plan.x_stages, 16);
  ring_place x(wide_product<T>::place(barriers.base + a.plan.x_ring), a.plan.x_stages, wide_product<T>::stage_distance);
  ring_place codes(barriers.base + a.plan.w_ring, a.plan.w_stages, T::w_stage_bytes);
  ring_place scales(a.plan.scales, a.plan.slots, LPG_WIDE_SLOT_BYTES);
  const uint32_t own_codes = warp * T::row_tiles * T::w_vectors * 512 + lane * 16;
  row_numbers_of<T> rows[T::row_tiles];
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) rows[r].set_center(a.decoder.center);
  constexpr int depth = wide_product<T>::depth;
  wide_product<T> product;
  uint32_t operand[depth][T::row_tiles][4];
  stage_words<T> words;
  uint32_t parity = 0, stage_before = 0; /* 0: none */
  int pass = 0, turn = 0;
  if (T::General) numbers.copy_next();
  wait_barrier(full.at, parity);
  fence_for_tensor_cores();
  words.load(codes.at + own_codes, 0);
  for (int item = w.first_item; item < w.items; item += w.stride, turn++) {
    float *const factors = (float *)(memory + a.plan.factors) + turn % 2 * LPG_WIDE_ROWS;
    if (lane < T::row_tiles * LPG_TILE_ROWS) {
      const int row = warp * T::row_tiles * LPG_TILE_ROWS + lane;
      factors[row] = w.blocks > 0 ? row_factor<T>(a, w.row_item(item) * T::rows + row) : 0.0f;
    }
    product.clear();
    if (!T::General) {
      const uint8_t *slot = memory + scales.at + LPG_WIDE_SCALE_BYTES;
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        rows[r].set_power(a.numbers, (const int8_t *)slot + (warp * T::row_tiles + r) * LPG_TILE_ROWS, g);
      }
    }
#pragma unroll 1
    for (int left = w.blocks; left > 0; left--) {
      if (T::General) numbers.take();
      const uint32_t *slot = (const uint32_t *)(memory + scales.at) + warp * T::row_tiles * LPG_TILE_ROWS;
#pragma unroll
      for (int step = 0; step < steps; step++) {
        const int x_step = step % T::x_steps, w_step = step % T::w_steps;
        uint32_t(&weights)[T::row_tiles][4] = operand[step % depth];
#pragma unroll
        for (int r = 0; r < T::row_tiles; r++) {
          if (step % T::Granule == 0) {
            const int granule = step / T::Granule;
            if (T::General) {
              rows[r].load(numbers.table, (r * T::granules + granule) * 8 + g);
            } else {
              rows[r].load(slot + r * LPG_TILE_ROWS + granule * 8, g);
            }
          }
          const int unit = w_step / T::unit_steps, pair = w_step % T::unit_steps * 2;
#pragma unroll
          for (int half = 0; half < 2; half++) {
            const uint32_t *unit_words = &words.word[r][unit * T::unit_words * 2 + half];
#pragma unroll
            for (int i = 0; i < 2; i++) {
              weights[r][half + 2 * i] =
                  rows[r].scaled(decoder.decode(rows[r].rows[half], unit_words, pair + i), half, step_pair, shift_pair);
            }
          }
        }
        product.start(weights, x.at, x_step);
        if (x_step == depth - 1) {
          __syncwarp(); /* all lanes have read it */
          if (lane == 0 && stage_before != 0) arrive(stage_before);
        }
        if (w_step == T::w_steps - 1) codes.advance();
        if (x_step == T::x_steps - 1) {
          stage_before = full.at + 8;
          x.advance();
          parity ^= full.advance();
          wait_barrier(full.at, parity);
          fence_for_tensor_cores();
        }
        words.load(codes.at + own_codes, (w_step + 1) % T::w_steps);
        product.wait();
      }
      scales.advance();
    }
    product.finish();
    if (a.plan.slices > 1) {
      store_item<T, false>(a, w, item, product, factors, memory, barriers.sums(0), pass);
    } else {
      store_item<T, true>(a, w, item, product, factors, memory, barriers.sums(0), pass);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(T::threads, 1) wide_kernel(const __grid_constant__ wide_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const lpg_wide_plan &p = a.plan;
  const wide_work w(p, reads_product(a.epilogue));
  const uint32_t base = shared_address(memory);
  const barriers_of barriers = {base};
  if (threadIdx.x == 0) barriers.init<T>(p);
  if (!T::General && a.numbers.scale_on_rows) { /* what is read of slots that nobody fills */
    const uint32_t one = T::X::round(1.0f);
    for (int i = threadIdx.x; i < p.slots * LPG_WIDE_SLOT_BYTES / 4; i += T::threads) {
      ((uint32_t *)(memory + p.scales))[i] = one;
    }
  }
  T::Decoder::fill_table(a.decoder, memory + p.table, threadIdx.x, T::threads);
  __syncthreads();
  if (p.slices > 1) { /* before others arrive at this block's barriers */
    cluster_arrive();
    cluster_wait();
  }
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= T::warps) {
    give_registers_back<T::copy_registers>();
    load_items<T>(a, w, barriers, warp - T::warps, lane);
    wait_copies<0>();
    __syncwarp();
  } else {
    take_registers<T::registers>();
    multiply_items<T>(a, w, barriers, memory);
  }
  if (p.slices > 1) { /* before others lose what they still write to */
    cluster_arrive();
    cluster_wait();
  }
}

}  // namespace
}  // namespace lpg
