/* The wide kernels: from 17 rows of X to any number, up to the speed of the tensor cores.
 *
 *   four warps load X and the weights into stages in shared memory, a ring of them
 *   eight or sixteen warps, each with its own rows of the work tile's and a part of K:
 *     for every few steps of 16 columns: decode and scale weights in registers while the tensor cores multiply those
 *     before
 *   the sums of all parts are added up in a fixed order; epilogue, store */
#pragma once

#include "../epilogue/store_fast.cuh"
#include "gemm_load.cuh"
#include "gemm_mma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Where a consumer warp is in the rings: addresses, but of slots the offset in shared memory. */
template <class T>
struct reading_place {
  static constexpr lpg_gemm_slot slot = T::slot();
  ring_place full, x, codes, slots;
  uint32_t parity = 0;

  __device__ reading_place(const gemm_args &a, uint32_t base, uint32_t slot_bytes)
      : full(barriers_of{base}.full(0), a.plan.x_stages, 16),
        x(gemm_product<T>::place(base + a.plan.x_ring), a.plan.x_stages, gemm_product<T>::stage_distance),
        codes(base + a.plan.w_ring, a.plan.w_stages, T::w_stage_bytes),
        slots(a.plan.scales, a.plan.slots, slot_bytes) {}

  /* Goes past k blocks of other teams. */
  __device__ void pass_blocks(int count) {
    x.advance(count * (steps / T::x_steps));
    codes.advance(count * (steps / T::w_steps));
    parity ^= full.advance(count * (steps / T::x_steps));
    slots.advance(count * (steps / slot.steps));
  }

  __device__ void wait() const { wait_barrier(full.at, parity); }
};

/* A warp's weights: a lane's words of the stage that is being decoded, and what its rows are scaled by. */
template <class T>
struct warp_weights {
  static constexpr lpg_gemm_slot slot = T::slot();
  const typename T::Dequantiser dequantiser;
  const scaled_dequantiser<T::Bits> scaled;
  const int row_tile, lane; /* of the work tile's row tiles, the warp's first */
  const uint32_t own_codes; /* where the lane's words are in a stage */
  const uint32_t stage_groups,
      line_bytes; /* the form LINES: groups of a stage, and bytes of a row tile's lines of it */
  row_scales_of<T> rows[T::row_tiles];
  uint32_t word[T::row_tiles][4 * T::w_vectors];

  __device__ warp_weights(const gemm_args &a, const uint8_t *table, int warp, int lane)
      : dequantiser(a.dequantiser, table, lane),
        scaled(a.dequantiser),
        row_tile(warp * T::row_tiles),
        lane(lane),
        own_codes(row_tile * T::w_vectors * 512 + lane * 16),
        stage_groups(a.stage_groups),
        line_bytes(a.stage_groups * LPG_GEMM_LINE_BYTES) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      rows[r].set_centers(T::Codes::round(a.dequantiser.center), T::Codes::round(a.dequantiser.center));
    }
  }

  __device__ uint32_t slot_bytes() const { return T::lines ? row_tiles_of<T> * line_bytes : slot.bytes; }

  /* Of a work tile's rows, from its first slot. */
  __device__ void set_powers(const scales_args &scale_data, const uint8_t *first_slot) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const uint8_t *const exponents = first_slot + slot.exponents + (row_tile + r) * LPG_TILE_ROWS;
      rows[r].set_power(scale_data, (const int8_t *)exponents, lane / 4);
    }
  }

  /* Loads what is needed first in the batch of steps of the stage that begins there. */
  __device__ void load_codes(uint32_t stage, int step) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int v = 0; v < T::w_vectors; v++) {
        if (T::first_step(v) / T::batch != step / T::batch) continue;
        load_words(stage + own_codes + (r * T::w_vectors + v) * 512, &word[r][4 * v]);
      }
    }
  }

  /* The scales and zeros of row tile r for the scale group that begins with the step. */
  __device__ void load_scales(const uint8_t *scale_data, int r, int step) {
    if constexpr (T::lines) {
      const uint32_t group = step % slot.steps * stage_groups / slot.steps;
      const uint8_t *const lines = scale_data + (row_tile + r) * line_bytes + group * LPG_GEMM_LINE_BYTES;
      rows[r].load(((const float4 *)lines)[lane / 4]);
    } else {
      const int scale_group = (row_tile + r) * slot.scale_groups + step % slot.steps / T::ScaleSteps;
      rows[r].load(scaled, scale_data + scale_group * slot.scale_bytes,
                   scale_data + slot.zeros + scale_group * slot.zero_bytes, lane / 4);
    }
  }

  /* The operand of a step and row tile. */
  __device__ void decode(uint32_t (&operand)[4], int r, int step) const {
    const int unit = step % T::w_steps / T::unit_steps, pair = step % T::unit_steps * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint32_t *const unit_words = &word[r][unit * T::unit_words * 2 + half];
#pragma unroll
      for (int i = 0; i < 2; i++) operand[half + 2 * i] = rows[r].weights(dequantiser, half, unit_words, pair + i);
    }
  }

  /* The operands of the batch of steps that begins there. */
  __device__ void dequantise_batch(uint32_t (&operands)[T::batch][T::row_tiles][4], const uint8_t *scale_data,
                                   int first) {
#pragma unroll
    for (int step = first; step < first + T::batch; step++) {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        if (T::slots && step % T::ScaleSteps == 0) load_scales(scale_data, r, step);
        decode(operands[step - first][r], r, step);
      }
    }
  }
};

/* Tells those who copy that the warp has read the stage of that barrier; 0: none. */
template <class T>
__device__ inline void release_stage(const gemm_work &w, uint32_t empty, int lane) {
  __syncwarp(); /* all lanes have read it */
  if (T::shares) {
    if (lane < w.multicast && empty != 0) arrive_remote(empty, w.multicast > 1 ? lane : w.rank);
  } else if (lane == 0 && empty != 0) {
    arrive(empty);
  }
}

/* The sums of a work tile, of its last part and of those before, to whoever adds them up, or to Y. */
template <class T, class Work>
__device__ inline void store_sums(const gemm_args &a, const Work &w, int tile, gemm_product<T> &product,
                                  const gemm_product<T> &before, int runs, float *factors, uint8_t *memory) {
  if constexpr (!is_half<T>) {
    if (a.plan.at_once > 1) {
      if constexpr (T::runs) {
        if (runs > 1) return store_two_parts<T>(a, w, tile, before, product, factors, memory);
      }
      return store_parts<T>(a, w, tile, product, factors, memory);
    }
  }
  if (T::runs && runs > 1) product.add(before);
  if constexpr (T::row_tiles * T::whole::TileM >= 256) {
    if (store_scaled<T>(a, w, tile, product, factors, memory)) return;
  }
  store_tile<T>(a, w, tile, product, factors, memory);
}

/* A consumer warp, from one work tile to the next. */
template <class T>
struct consumer_warp {
  const int lane, warp, team; /* warp: of the team's */
  const gemm_parts<T> parts;
  warp_weights<T> weights;
  reading_place<T> place;
  uint32_t empty_before; /* the barrier of the stage that the tensor cores may still read; 0: none */
  const bool ahead;      /* the next work tile's first stage comes while the one before is multiplied */

  __device__ consumer_warp(const gemm_args &a, const gemm_work &w, barriers_of barriers, const uint8_t *memory,
                           int all_warp)
      : lane(threadIdx.x % 32),
        warp(all_warp % T::team_warps),
        team(all_warp / T::team_warps),
        parts(a, w),
        weights(a, memory + a.plan.table, warp, lane),
        place(a, barriers.base, weights.slot_bytes()),
        empty_before(0),
        ahead(a.plan.at_once == 1) {}
};

/* A step's weights are dequantised while the tensor cores have the step before, and a stage is waited for, and its
 * first words are loaded, before the last step of the stage before is waited for. */
template <class T, class Work>
__device__ inline void multiply_tile(const gemm_args &a, const Work &w, int tile, int turn,
                                     consumer_warp<typename T::whole> &own, uint8_t *memory) {
  const auto &parts = own.parts;
  auto &weights = own.weights;
  auto &place = own.place;
  const int blocks = parts.blocks_of(own.team);
  gemm_product<T> product, before; /* before: of the parts before, added up */
  uint32_t operands[gemm_product<T>::depth][T::batch][T::row_tiles][4];
  for (int i = 0; i < own.team; i++) place.pass_blocks(1);
  if (own.ahead || blocks > 0) {
    place.wait();
    weights.load_codes(place.codes.at, 0);
  }
  float *const factors = (float *)(memory + a.plan.factors) + turn % 2 * LPG_GEMM_TILE_N;
  if (own.lane < T::row_tiles * LPG_TILE_ROWS) {
    const int row = own.warp * T::row_tiles * LPG_TILE_ROWS + own.lane;
    factors[row] = blocks > 0 ? row_factor<T>(a, w.n_tile(tile) * T::tile_n + row) : 0.0f;
  }
  if (T::runs) before.clear();
  if (T::slots && !T::lines) weights.set_powers(a.scale_data, memory + place.slots.at);
  int left = blocks;
#pragma unroll 1
  for (int run = 0; run < parts.runs; run++) {
    product.clear();
#pragma unroll 1
    for (const int end = left - parts.blocks_of(own.team, run); left > end; left--) {
#pragma unroll
      for (int first = 0; first < steps; first += T::batch) {
        auto &batch = operands[first / T::batch % gemm_product<T>::depth];
        weights.dequantise_batch(batch, memory + place.slots.at, first);
        const int x_step = first % T::x_steps, next = first + T::batch;
        const uint32_t read = own.empty_before; /* by all batches but this */
        product.start(batch, place.x.at, x_step);
        if (next % T::w_steps == 0) place.codes.advance();
        if (next % T::slot().steps == 0) place.slots.advance();
        if (next % T::x_steps == 0) {
          const bool comes = next < steps || left > 1 || own.ahead;
          const uint32_t here = place.full.at, parity_here = place.parity;
          own.empty_before = barriers_of::empty_of(here);
          place.x.advance();
          place.parity ^= place.full.advance();
          if (T::teams > 1 && next == steps) place.pass_blocks(left > 1 ? T::teams - 1 : 0);
          /* without a branch: see row_scales_of::load() */
          wait_barrier(comes ? place.full.at : here, comes ? place.parity : parity_here);
        }
        weights.load_codes(place.codes.at, next % T::w_steps);
        product.wait();
        if (x_step == 0) release_stage<T>(w, read, own.lane);
      }
    }
    product.finish();
    if (T::runs && run + 1 < parts.runs) before.add(product);
  }
  __syncwarp();
  if (a.plan.at_once > 1) { /* teams go on from here at different stages: past what is left of the others' */
    if (own.lane == 0 && own.empty_before != 0) arrive(own.empty_before);
    own.empty_before = 0;
    for (int i = own.team + T::teams * (blocks - 1) + 1; T::teams > 1 && i < parts.blocks(); i++) place.pass_blocks(1);
  }
  store_sums<T>(a, w, tile, product, before, parts.runs, factors, memory);
}

template <class T>
__device__ inline void multiply_tiles(const gemm_args &a, const gemm_work &w, barriers_of barriers, uint8_t *memory,
                                      int warp) {
  consumer_warp<T> own(a, w, barriers, memory, warp);
  int turn = 0;
  for (int tile = w.first_tile; tile < w.tiles; tile += w.stride) multiply_tile<T>(a, w, tile, turn++, own, memory);
  if constexpr (lpg_gemm_has_halves(T::TileM)) {
    const halves_of<gemm_work> halves(w);
    if (w.first_tile < halves.tiles) multiply_tile<gemm_half_traits<T>>(a, halves, w.first_tile, turn, own, memory);
  }
}

enum { slots_are_filled = 2 }; /* the barrier of the block's consumer warps */

template <class T>
__global__ void __launch_bounds__(T::threads, 1) gemm_kernel(const __grid_constant__ gemm_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const lpg_gemm_plan &p = a.plan;
  pdl_launch_next();
  const uint32_t base = shared_address(memory);
  const barriers_of barriers = {base};
  if (threadIdx.x == 0) barriers.init<T>(p);
  __syncthreads();
  if (T::shares && p.multicast > 1) { /* before others copy to this block, or arrive at its barriers */
    cluster_arrive();
    cluster_wait();
  }
  if (a.epilogue.device_alpha) pdl_wait(); /* reads_product() reads it */
  const gemm_work w(p, reads_product(a.epilogue));
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= T::warps) {
    release_registers<T::copy_registers>();
    load_tiles<T>(a, w, barriers, warp - T::warps, lane);
    __syncwarp();
  } else {
    take_registers<T::registers>();
    if (T::slots && !T::lines) fill_slots<T>(a, memory + p.scales);
    T::Dequantiser::fill_table(a.dequantiser, memory + p.table, threadIdx.x, 32 * T::warps);
    threads_meet(slots_are_filled, 32 * T::warps);
    pdl_wait();
    multiply_tiles<T>(a, w, barriers, memory, warp);
  }
  if (T::shares && p.multicast > 1) { /* before others lose what they still copy to */
    cluster_arrive();
    cluster_wait();
  }
}

}  // namespace
}  // namespace lpg
