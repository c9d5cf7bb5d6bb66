/* The decode kernels: up to 16 rows of X, at the speed at which the packed weights can be read.
 *
 *   start copies of the first weights; bring the slice of X into shared memory
 *   for every round of super tiles, every warp for its even share of (super tile, block of 256 columns):
 *     wait for the block, take it into registers, start the copy of a later one
 *     for every 16 columns: decode, multiply on the tensor cores
 *     after every group: sums += scale * products (+ shift * sum of X)
 *   combine the warps' and the slices' sums in a fixed order, apply the epilogue, store
 *
 * A warp's share is a contiguous run of blocks, whose first and last super tile it may share with its neighbours. Its
 * sums for a super tile go to slot (tile in round + warp), which no other pair has, and the slots of one tile are
 * contiguous. */
#pragma once

#include "combine.cuh"
#include "weight_ring.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- activations ---- */

/* Starts to copy the slice of X into shared memory, a block of a row a warp and turn, 8 columns a lane; what is beyond
 * the matrix is zero. Blocks of threads begin with different columns (turn), so that they do not all ask the same part
 * of L2. */
template <class T>
__device__ inline void stage_x(const decode_args &a, int m0, int first_block, int blocks, int turn, uint8_t *to) {
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32);
  const int rows = min(a.plan.x_rows, a.m - m0);
  const bool aligned = (uintptr_t)a.x % 16 == 0 && a.ldx % 8 == 0;
  const int shift = (unsigned)turn % (unsigned)blocks;
  int block = warp - warps, row = 0;
  const auto next = [&] {
    for (block += warps; block >= blocks; row++) block -= blocks;
    return row < a.plan.x_rows;
  };
  while (next()) {
    const int turned = block + shift < blocks ? block + shift : block + shift - blocks;
    const int64_t k = (int64_t)(first_block + turned) * block_k + lane * 8;
    const uint16_t *from = a.x + (m0 + row) * a.ldx + k;
    uint8_t *out = to + row * a.plan.x_stride + turned * (block_k * 2) + lane * 16;
    if (aligned && row < rows && k + 8 <= a.k) {
      copy16_async(shared_address(out), from);
      continue;
    }
    const auto at = [&](int j) { return row < rows && k + j < a.k ? (uint32_t)from[j] : 0u; };
    *(uint4 *)out = make_uint4(at(0) | at(1) << 16, at(2) | at(3) << 16, at(4) | at(5) << 16, at(6) | at(7) << 16);
  }
}

/* Sums of X over each granule, Columns floats a granule; rows beyond x_rows repeat the last. */
template <class T>
__device__ inline void sum_x(const decode_args &a, int blocks, const uint8_t *x, float *sums) {
  for (int i = threadIdx.x; i < blocks * T::granules * T::Columns; i += threads) {
    const int column = i % T::Columns, granule = i / T::Columns, row = min(column, a.plan.x_rows - 1);
    const uint4 *eight = (const uint4 *)(x + row * a.plan.x_stride) + granule * T::Granule * 2;
    float sum = 0.0f;
#pragma unroll 2
    for (int j = 0; j < T::Granule * 2; j++) {
      const uint32_t two[4] = {eight[j].x, eight[j].y, eight[j].z, eight[j].w};
#pragma unroll
      for (int v = 0; v < 4; v++) sum += T::X::widen((uint16_t)two[v]) + T::X::widen((uint16_t)(two[v] >> 16));
    }
    sums[i] = sum;
  }
}

/* ---- one block ---- */

/* Adds a granule's products, scaled, to the totals, and clears them. */
template <class T>
__device__ inline void scale_products(const numbers_args &a, const number_table &table, int granule, int g,
                                      const float *sums, accumulators<T> &products, accumulators<T> &totals) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    const int at = (r * T::granules + granule) * 8 + g;
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
    if (a.has_shift) {
      const float2 shift = table.shift[at];
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) {
        const float2 sum = *(const float2 *)(sums + granule * T::Columns + j * 8);
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

template <class T>
struct row_centers {
  typename T::Decoder::rows row[T::row_tiles][2];
};

/* The centers of a granule's rows, where zeros differ. */
template <class T>
__device__ inline void set_centers(const number_table &table, int granule, int g, row_centers<T> &centers) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    const uint32_t two = table.center[(r * T::granules + granule) * 8 + g];
    T::Decoder::set_center(centers.row[r][0], __byte_perm(two, 0, 0x1010));
    T::Decoder::set_center(centers.row[r][1], __byte_perm(two, 0, 0x3232));
  }
}

/* Multiplies one block: word[r] are a lane's words, x[j] the address of its row of X for load_matrices(), sums the sums
 * of X from this block on (rows 2t and 2t + 1). */
template <class T>
__device__ inline void multiply_block(const numbers_args &a, const typename T::Decoder &decoder,
                                      const uint32_t (&word)[T::row_tiles][T::words], const uint32_t (&x)[T::x_tiles],
                                      const float *sums, const number_table &table, int g, row_centers<T> &centers,
                                      accumulators<T> &totals) {
  accumulators<T> products;
  products.clear();
  uint32_t b[T::x_tiles][4];
#pragma unroll
  for (int step = 0; step < steps; step++) {
    if (step % 2 == 0) {
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) load_matrices(x[j] + step * 32, b[j]);
    }
    if (T::Decoder::centered && step % T::Granule == 0 && a.mode != zero_fixed) {
      set_centers<T>(table, step / T::Granule, g, centers);
    }
    const int unit = step / T::unit_steps, pair = step % T::unit_steps * 2;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      uint32_t w[4];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const uint32_t *codes = &word[r][unit * T::unit_words * 2 + half];
        w[half] = decoder.decode(centers.row[r][half], codes, pair);
        w[half + 2] = decoder.decode(centers.row[r][half], codes, pair + 1);
      }
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) {
        T::X::mma::multiply(products.sum[r][j], w, b[j][step % 2 * 2], b[j][step % 2 * 2 + 1]);
      }
    }
    if (step % T::Granule == T::Granule - 1) {
      scale_products<T>(a, table, step / T::Granule, g, sums, products, totals);
    }
  }
}

/* ---- the kernel ---- */

template <class T>
__global__ void __launch_bounds__(threads, 1) decode_kernel(const __grid_constant__ decode_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const lpg_decode_plan &p = a.plan;
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), g = lane / 4, t = lane % 4;
  const int slice = blockIdx.x % p.slices, group = blockIdx.x / p.slices;
  const int first_tile = first_of(p.group, group), tiles = count_of(p.group, group);
  const int first_block = first_of(p.slice, slice), blocks = reads_product(a.epilogue) ? count_of(p.slice, slice) : 0;
  uint8_t *x = memory + p.x;
  float *sums = (float *)(memory + p.sums);
  slot_span *spans = (slot_span *)(memory + p.spans);
  uint8_t *numbers = memory + p.numbers + warp * ((p.ring - p.numbers) / warps);
  constexpr int pairs = T::row_tiles * T::granules * 8;
  const number_table table = {(float2 *)numbers, (float2 *)numbers + pairs,
                              (uint32_t *)((float2 *)numbers + (a.numbers.has_shift ? 2 : 1) * pairs)};
  uint8_t *ring_memory = memory + p.ring + warp * T::stages * p.stage_bytes;

  for (int m0 = 0; m0 < a.m; m0 += p.x_rows) {
    work w(warp, tiles, blocks, p.round_tiles);
    if (T::Clusters && p.slices > 1) cluster_arrive(); /* before the others may write here */
    weight_ring<T> ring(a, w, first_tile * T::row_tiles, first_block, lane, ring_memory);
    ring.fill_stages(0, 1);
    if (blocks > 0) stage_x<T>(a, m0, first_block, blocks, group, x); /* before weights that would hold it up */
    commit_copies();
    ring.fill_stages(1, T::stages);
    T::Decoder::fill_table(a.decoder, memory, threadIdx.x, threads);
    ring.wait_for_second();
    __syncthreads();
    if (a.numbers.has_shift) {
      sum_x<T>(a, blocks, x, sums);
      __syncthreads();
    }

    const typename T::Decoder decoder(a.decoder, memory, lane);
    row_centers<T> centers;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      T::Decoder::set_center(centers.row[r][0], T::X::round(a.decoder.center));
      T::Decoder::set_center(centers.row[r][1], T::X::round(a.decoder.center));
    }
    const f16_scales scales = find_f16_scales<T::row_tiles, T::granules>(a.numbers, lane);
    uint32_t lane_x[T::x_tiles];
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
      lane_x[j] = shared_address(x) + min(j * 8 + lane % 8, p.x_rows - 1) * p.x_stride + lane / 8 * 16;
    }
    for (int round = 0; round < w.rounds; round++) {
      for (w.start_round(); w.run > 0; w.next_run()) {
        accumulators<T> totals;
        totals.clear();
        uint32_t block_x[T::x_tiles];
#pragma unroll
        for (int j = 0; j < T::x_tiles; j++) block_x[j] = lane_x[j] + w.block * (block_k * 2);
        const float *block_sums = sums + w.block * T::granules * T::Columns + 2 * t;
        for (int i = 0; i < w.run; i++) {
          ring.wait();
          const uint8_t *stage = ring_memory + ring.stage;
          uint32_t word[T::row_tiles][T::words];
#pragma unroll
          for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
            for (int v = 0; v < T::Bits; v++) {
              *(uint4 *)&word[r][4 * v] = *(const uint4 *)(stage + r * T::block_bytes + v * 512 + lane * 16);
            }
          }
          convert_numbers<typename T::X, T::row_tiles, T::granules>(a.numbers, scales, stage, table, lane);
          ring.release();
          multiply_block<T>(a.numbers, decoder, word, block_x, block_sums, table, g, centers, totals);
#pragma unroll
          for (int j = 0; j < T::x_tiles; j++) block_x[j] += block_k * 2;
          block_sums += T::granules * T::Columns;
        }
        const int tile = w.tile - w.first_tile, slot = tile + warp;
        store_slot<T>(p, memory + p.slots, slot, lane, totals);
        if (lane == 0 && w.block == 0) spans[tile].first = (uint16_t)slot;
        if (lane == 0 && w.block + w.run == blocks) spans[tile].last = (uint16_t)slot;
      }
      uint8_t *inbox = memory + p.inbox + round % 2 * p.slices * p.inbox_slice; /* others may read the last round's */
      __syncthreads();
      if (T::Clusters && p.slices > 1) {
        if (round == 0) cluster_wait(); /* the others have started */
        send_sums(p, w, slice, memory + p.slots, spans, inbox);
        cluster_arrive();
        cluster_wait();
      }
      store_outputs<T>(a, w, first_tile, slice, m0, memory + p.slots, spans, inbox);
      __syncthreads(); /* before slots and X change */
    }
  }
}

}  // namespace
}  // namespace lpg
