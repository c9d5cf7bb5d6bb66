/* The bits kernels: up to 8 rows of fp16 or bf16 by weights of 1 and 2 bits, whose packed words go to the binary tensor
 * cores untouched (docs/bitserial.md).
 *
 *   start loads of the first weights; cut the slice of X into planes, in shared memory
 *   every warp for its even share of (super tile, block of 256 columns):
 *     for every row of X and row tile: binary products of the words and the planes; the counts, shifted and summed over
 *     lanes as integers, are the exact products of the codes and X's fixed-point numbers; scale them, add them up
 *   combine the warps' and the slices' sums in a fixed order, apply the epilogue, store
 *
 * A warp's share is a contiguous run of units. Its sums for a super tile go to slot (tile + warp), which no other pair
 * has, and the slots of one tile are contiguous. */
#pragma once

#include "../kernels/prim/binary.cuh"
#include "../kernels/prim/cluster.cuh"
#include "bits_numbers.cuh"
#include "bits_prepare.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- weights on their way ---- */

/* What a lane has of a unit: words of a block of each row tile, and scales and zeros. */
template <class T>
struct unit_words {
  uint32_t word[T::row_tiles][4 * T::Bits];
  raw_numbers numbers[T::row_tiles];
};

/* What a warp loads next. */
template <class T>
struct unit_stream {
  const bits_args &a;
  int tile, block, left;               /* the next unit, and how many there are */
  int first_tile, first_block, blocks; /* of the block of threads */
  int lane, slot, odd;                 /* the lane's, its row's slot, and chunk of a block */

  __device__ void load(unit_words<T> &unit) {
    if (left <= 0) return;
    left--;
    const int at = first_block + block;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) { /* what is not there repeats the last */
      const int row_tile = min((first_tile + tile) * T::row_tiles + r, a.row_tiles - 1);
      const uint8_t *const codes = a.codes + row_tile * a.row_bytes + at * T::block_bytes + lane * 16;
#pragma unroll
      for (int v = 0; v < T::Bits; v++) {
        if (v == 0) {
          load16(codes, unit.word[r]);
        } else {
          load16_if_more(a.row_vectors - at * T::Bits, v, codes + v * 512, unit.word[r] + 4 * v);
        }
      }
      unit.numbers[r] = load_numbers_of<T>(a.numbers, row_tile, at * 2 + odd, slot);
    }
    if (++block == blocks) {
      block = 0;
      tile++;
    }
  }
};

/* ---- products ---- */

/* What the lane's columns of the three blocks count, times 4^t: 2^(2t), 2^(2t + 1), 2^8 times and 2^16 times that, and
 * of lane t = 3 in the last block the sign's (bits_fixed.h). Arithmetic is modulo 2^32, in which sums fit. */
struct column_weights {
  int low, high0, high1;

  __device__ column_weights(int bits, int t) {
    low = 1 << 2 * t;
    high0 = lpg_plane_weight(bits, 16 + 2 * t);
    high1 = lpg_plane_weight(bits, 17 + 2 * t);
  }

  /* Of row g (half 0) or g + 8. */
  __device__ int sum(const int (&d)[3][4], int half) const {
    const int first = d[0][2 * half] + 2 * d[0][2 * half + 1], second = d[1][2 * half] + 2 * d[1][2 * half + 1];
    return (first + 256 * second) * low + d[2][2 * half] * high0 + d[2][2 * half + 1] * high1;
  }
};

/* Sums over the four lanes t of [row half][chunk]: lane t gets that of half t / 2 and chunk t % 2. */
__device__ inline int sum_over_lanes(const int (&v)[2][2], int t) {
  int half[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int kept = t & 1 ? v[i][1] : v[i][0], sent = t & 1 ? v[i][0] : v[i][1];
    half[i] = kept + __shfl_xor_sync(~0u, sent, 1);
  }
  const int kept = t & 2 ? half[1] : half[0], sent = t & 2 ? half[0] : half[1];
  return kept + __shfl_xor_sync(~0u, sent, 2);
}

/* The planes of a row of X for the lane, of both chunks of a block. */
template <int Bits>
struct lane_planes {
  uint32_t word[2][3 * Bits];

  __device__ lane_planes(const uint32_t *from) {
    uint32_t *const to = word[0];
#pragma unroll
    for (int i = 0; i < 3; i++) {
      if (Bits == 1) {
        const uint2 v = *(const uint2 *)(from + 2 * i);
        to[2 * i] = v.x, to[2 * i + 1] = v.y;
      } else {
        const uint4 v = *(const uint4 *)(from + 4 * i);
        to[4 * i] = v.x, to[4 * i + 1] = v.y, to[4 * i + 2] = v.z, to[4 * i + 3] = v.w;
      }
    }
  }
};

/* Sums of codes times X's integers, for the lane's row half and chunk. */
template <int Bits>
__device__ inline int multiply(const uint32_t *words, const lane_planes<Bits> &planes, const column_weights &weights,
                               int t) {
  int v[2][2];
#pragma unroll
  for (int chunk = 0; chunk < 2; chunk++) {
    int d[3][4];
#pragma unroll
    for (int b = 0; b < 3; b++) {
      if (Bits == 1) {
        and_popc_128(d[b], words + 2 * chunk, planes.word[chunk][b]);
      } else {
        and_popc_256(d[b], words + 4 * chunk, planes.word[chunk][2 * b], planes.word[chunk][2 * b + 1]);
      }
    }
    v[0][chunk] = weights.sum(d, 0);
    v[1][chunk] = weights.sum(d, 1);
  }
  return sum_over_lanes(v, t);
}

/* A warp's sums for a super tile: the lane's row half and chunks. */
template <class T>
struct lane_sums {
  float sum[T::row_tiles][T::Columns];

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int m = 0; m < T::Columns; m++) sum[r][m] = 0.0f;
    }
  }

  /* To a slot: [row tile][row of X][row]. */
  __device__ void store(float *slot, int lane, float factor) const {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int m = 0; m < T::Columns; m++) {
        const float both = sum[r][m] + __shfl_xor_sync(~0u, sum[r][m], 1);
        if (t % 2 == 0) slot[(r * T::Columns + m) * LPG_TILE_ROWS + t / 2 * 8 + g] = both * factor;
      }
    }
  }
};

/* Adds a unit's products; x: the planes of its block, of the first row of X. */
template <class T>
__device__ inline void multiply_unit(const bits_args &a, const unit_words<T> &unit, const uint32_t *x, int lane,
                                     const column_weights &weights, lane_sums<T> &sums) {
  const int t = lane % 4;
  row_scaling scaling[T::row_tiles];
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) scaling[r] = scaling_of<T>(a.numbers, unit.numbers[r]);
#pragma unroll
  for (int m = 0; m < T::Columns; m++, x += a.plan.x_stride / 4) {
    const lane_planes<T::Bits> planes(x + lane * (6 * T::Bits));
    const uint2 numbers = *(const uint2 *)(x + T::plane_words + t % 2 * 2);
    const float unit_of_x = __uint_as_float(numbers.x);
    const int sum_of_x = (int)numbers.y;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const int sum = 2 * multiply<T::Bits>(unit.word[r], planes, weights, t) - scaling[r].center * sum_of_x;
      float product = (float)sum;
      if (!T::General && a.numbers.rest != 0.0f) product = fmaf(a.numbers.rest, (float)sum_of_x, product);
      float &total = sums.sum[r][m];
      total = fmaf(product * unit_of_x, scaling[r].scale, total);
      if (T::General) total = fmaf((float)sum_of_x * unit_of_x, scaling[r].shift, total);
    }
  }
}

/* ---- from sums to outputs ---- */

/* The part of the unit. */
__device__ inline int share_of(const lpg_shares &s, int unit) {
  const int large = s.more * (s.each + 1);
  return unit < large ? unit / (s.each + 1) : s.more + (unit - large) / s.each;
}

/* Adds up what the warps have for an output of a super tile, in their order. */
template <class T>
__device__ inline float add_warps(const bits_args &a, const lpg_shares &shares, int blocks, int tile,
                                  const float *slots, int at) {
  if (blocks == 0) return 0.0f;
  const int first = share_of(shares, tile * blocks), last = share_of(shares, (tile + 1) * blocks - 1);
  float sum = 0.0f;
  for (int warp = first; warp <= last; warp++) sum += slots[(tile + warp) * (a.plan.slot_bytes / 4) + at];
  return sum;
}

template <class T>
__device__ inline void combine_sums(const bits_args &a, const lpg_shares &shares, int first_tile, int tiles, int blocks,
                                    int slice, uint8_t *memory) {
  constexpr int outputs = LPG_BITS_ROWS * T::Columns; /* of a super tile */
  const int slices = a.plan.slices;
  const float *const slots = (const float *)(memory + a.plan.slots);
  float *const inbox = (float *)(memory + a.plan.inbox);
  const auto store = [&](int tile, int at, float sum) {
    const int row_tile = (first_tile + tile) * T::row_tiles + at / (T::Columns * LPG_TILE_ROWS);
    const int n = row_tile * LPG_TILE_ROWS + at % LPG_TILE_ROWS, m = at / LPG_TILE_ROWS % T::Columns;
    if (n < a.n && m < a.m) store_real(a.epilogue, m, n, sum);
  };
  if (slices == 1) {
    for (int i = threadIdx.x; i < tiles * outputs; i += T::threads) {
      const int tile = i / outputs, at = i % outputs;
      store(tile, at, add_warps<T>(a, shares, blocks, tile, slots, at));
    }
    return;
  }
  cluster_wait();                                                   /* the others have started */
  for (int i = threadIdx.x; i < tiles * outputs; i += T::threads) { /* to rank tile % slices, which stores it */
    const int tile = i / outputs, at = i % outputs;
    float *const to = inbox + slice * (a.plan.inbox_slice / 4) + tile / slices * outputs + at;
    store_to_block(shared_address(to), tile % slices, add_warps<T>(a, shares, blocks, tile, slots, at));
  }
  cluster_arrive();
  cluster_wait();
  for (int i = threadIdx.x; i / outputs * slices + slice < tiles; i += T::threads) {
    float sum = 0.0f;
    for (int s = 0; s < slices; s++) sum += inbox[s * (a.plan.inbox_slice / 4) + i];
    store(i / outputs * slices + slice, i % outputs, sum);
  }
}

/* ---- the kernel ---- */

template <class T>
__global__ void __launch_bounds__(T::threads, 1) bits_kernel(const __grid_constant__ bits_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const lpg_bits_plan &p = a.plan;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), t = lane % 4;
  const int slice = (int)(blockIdx.x % (unsigned)p.slices), group = (int)(blockIdx.x / (unsigned)p.slices);
  const int first_tile = first_of(p.group, group), tiles = count_of(p.group, group);
  const int first_block = first_of(p.slice, slice), blocks = reads_product(a.epilogue) ? count_of(p.slice, slice) : 0;
  const lpg_shares shares = {tiles * blocks / T::warps, tiles * blocks % T::warps};
  const int first = first_of(shares, warp);
  int left = count_of(shares, warp), tile = left > 0 ? first / blocks : 0, block = first - tile * blocks;

  if (p.slices > 1) cluster_arrive(); /* before the others may write here */
  unit_words<T> units[T::depth] = {};
  unit_stream<T> stream = {a, tile, block, left, first_tile, first_block, blocks, lane, lane / 4 * 2 + t / 2, t % 2};
#pragma unroll
  for (int d = 0; d < T::depth; d++) stream.load(units[d]);
  if (blocks > 0) prepare_x<T>(a, first_block, blocks, memory);
  __syncthreads();

  const column_weights weights(T::Bits, t);
  const float factor = T::General ? 1.0f : 0.5f * a.numbers.step;
  lane_sums<T> sums;
  sums.clear();
  while (left > 0) {
#pragma unroll
    for (int d = 0; d < T::depth; d++) {
      if (left <= 0) break;
      multiply_unit<T>(a, units[d], (const uint32_t *)memory + block * T::block_words, lane, weights, sums);
      stream.load(units[d]);
      left--;
      if (++block == blocks || left == 0) {
        sums.store((float *)(memory + p.slots + (tile + warp) * p.slot_bytes), lane, factor);
        sums.clear();
        block = 0;
        tile++;
      }
    }
  }
  __syncthreads();
  combine_sums<T>(a, shares, first_tile, tiles, blocks, slice, memory);
}

}  // namespace
}  // namespace lpg
