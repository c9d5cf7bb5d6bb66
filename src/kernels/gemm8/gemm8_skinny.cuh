/* skinny8: integer weights by few rows of integer X, as bytes on the int8 tensor cores (wgmma, sm_90a). It reads X as
 * it is: no kernel has to prepare it.
 *
 *   All warps copy the CTA's part of K of X to shared memory, put it in the order of packed weights, and sum its rows.
 *   4 warpgroups, each with a work tile of 64 rows of W, or with one part of its k blocks. In each round each warp
 *   loads the packed words of 16 rows a few k blocks ahead, makes them into bytes (wgmma's A operand), and multiplies.
 *   Split-K is over the CTAs of a cluster and over warpgroups: each writes its partial sums to the shared memory of
 *   the CTA that stores the rows. After a cluster barrier that CTA adds them in a fixed order; then the epilogue. */
#pragma once

#include "../epilogue/store.cuh"
#include "../launch/launch.cuh"
#include "../operand/bit_planes.h"
#include "../operand/integer_line.h"
#include "../operand/scales_any.cuh"
#include "../operand/x_rows.cuh"
#include "../operand/x_type.cuh"
#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"
#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"
#include "gemm8_skinny_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int skinny8_threads = 128 * LPG_SKINNY8_GROUPS;

struct skinny8_args {
  lpg_skinny8_plan plan;
  const uint8_t *codes;
  int64_t row_bytes;   /* of a row tile's codes */
  int32_t row_vectors; /* the same in vectors of 512 bytes */
  int32_t row_tiles, n, m, k;
  const uint8_t *x;
  int64_t ldx;
  uint32_t flip; /* what X's bytes are xored with to be signed, in all four bytes */
  lpg_integer_line w_line, x_line;
  groups_args groups;
  epilogue_args epilogue;
};

/* A lane's packed words of a k block, loaded ahead. */
template <int Bits>
struct skinny8_words {
  uint32_t word[4 * Bits];

  __device__ void load(const skinny8_args &a, const uint8_t *codes, int block) {
#pragma unroll
    for (int v = 0; v < Bits; v++) {
#pragma unroll
      for (int i = 0; i < 4; i++) word[4 * v + i] = 0;
      load16_if_more(a.row_vectors, block * Bits + v, codes + (int64_t)(block * Bits + v) * 512, word + 4 * v);
    }
  }
};

/* Starts to copy the CTA's part of X to shared memory, from row `first` of X on; a stage is 128 k. */
template <int TileM>
__device__ inline void copy_x(const skinny8_args &a, int first, int first_k, int stages, uint32_t to) {
  const x_matrix<1> x(a.x, a.ldx, a.m, a.k);
  const bool aligned = x.aligned();
  for (int stage = threadIdx.x / 32; stage < stages; stage += skinny8_threads / 32) {
    x.template load<TileM>(to + stage * (TileM * 128), first, first_k + stage * 128, threadIdx.x % 32, aligned);
  }
  commit_copies();
}

/* Puts what has arrived in the order of packed weights. sums: of the rows of X over the CTA's part of K. A warp
 * takes a row of X at a time, 512 k at once. */
template <int TileM>
__device__ inline void order_x(const skinny8_args &a, int x_rows, int first_k, int stages, uint8_t *x, int32_t *sums) {
  const int lane = threadIdx.x % 32, piece = lane % 8;
#pragma unroll 1
  for (int x_row = threadIdx.x / 32; x_row < x_rows; x_row += skinny8_threads / 32) {
    int sum = 0;
    for (int stage = lane / 8; stage < stages; stage += 4) {
      uint4 *const place = (uint4 *)(x + stage * (TileM * 128) + x_row * 128 + (piece ^ x_row % 8) * 16);
      const uint4 all = *place;
      uint32_t word[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int left = a.k - (first_k + stage * 128 + piece * 16 + 4 * i); /* beyond the row they stay zero */
        word[i] ^= left >= 4 ? a.flip : left <= 0 ? 0u : a.flip >> (32 - 8 * left);
        sum = __dp4a((int)word[i], 0x01010101, sum);
      }
      *place = make_uint4(lpg_bit_planes_x_bytes(word, 0), lpg_bit_planes_x_bytes(word, 1),
                          lpg_bit_planes_x_bytes(word, 2), lpg_bit_planes_x_bytes(word, 3));
    }
    sum = __reduce_add_sync(0xffffffffu, sum);
    if (lane == 0) sums[x_row] = sum;
  }
}

/* Multiplies one k block. word: free again when the bytes have been made. x: place of its first stage; code_sum:
 * sums of the codes of the lane's two rows, needed where X has an offset. */
template <int Bits, int Sums>
__device__ inline void multiply_block(const skinny8_args &a, const uint32_t *word, int block, uint32_t x,
                                      int (&sum)[Sums], int (&code_sum)[2]) {
  constexpr int x_rows = Sums * 2, stage_distance = x_rows * 128 / 16;
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    uint32_t bytes[4][4];
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const uint32_t stored =
          lpg_bit_planes_weight_bytes(Bits, word + half * Bits * 2 + i % 2, 2, i / 4 * 2 + i / 2 % 2);
      bytes[i / 4][i % 4] = (uint32_t)keep((int)(Bits == 8 ? stored ^ 0x80808080u : stored)); /* before wgmma_fence() */
    }
    if (a.x_line.offset != 0) {
      const int left = a.k - block * LPG_SKINNY8_BLOCK_K - half * LPG_BIT_PLANES_HALF_K;
      const uint32_t there = left >= LPG_BIT_PLANES_HALF_K ? 0xffffffffu : lpg_bit_planes_columns_left(t, left);
#pragma unroll
      for (int i = 0; i < 16; i++) {
        const uint32_t ones = there >> (i / 4 * 2 + i / 2 % 2) & 0x01010101u;
        code_sum[i % 2] = __dp4a((int)bytes[i / 4][i % 4], (int)ones, code_sum[i % 2]);
      }
    }
    wgmma_wait<0>();
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++)
      wgmma_i8_skinny::multiply(sum, bytes[i], swizzled_rows(x + half * stage_distance + i * 2));
    wgmma_commit();
  }
}

/* The rows of a round that the CTA stores: the rows of all work tiles of the round one after the other, an equal
 * share for each CTA of the cluster. */
struct skinny8_output {
  int first, count, first_row; /* first: in the round; first_row: of W, where the round begins */

  __device__ skinny8_output(const skinny8_args &a, int round, int rank, int cluster) {
    const int rows = LPG_SKINNY8_TILE_N * lpg_skinny8_each(&a.plan);
    count = a.plan.share;
    first = rank * count;
    first_row = (cluster + round * a.plan.clusters) * rows;
  }
};

/* What a thread needs of a round's rows: the offsets less zeros of its lane's two rows, and the scale of one row
 * that the CTA stores. */
struct skinny8_scales {
  int own[2];
  float scale;

  __device__ void load(const skinny8_args &a, const skinny8_output &out, int warpgroup) {
    const int row = out.first_row + warpgroup / a.plan.parts * LPG_SKINNY8_TILE_N +
                    threadIdx.x / 32 % 4 * LPG_TILE_ROWS + threadIdx.x % 32 / 4;
    const int stored = out.first_row + out.first + threadIdx.x;
    scale = 1.0f;
    if (a.groups.scale_type && (int)threadIdx.x < out.count && stored < a.n) {
      const uint32_t bits = section_bits(a.groups, LPG_SECTION_SCALES, a.groups.scale_type, a.groups.group, stored, 0);
      scale = lpg_load(a.groups.scale_type, &bits, 0);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int zero = a.groups.zero == LPGEMM_ZERO_CONSTANT ? (int)a.groups.zero_constant : 0;
      if (a.groups.zero == LPGEMM_ZERO_PER_GROUP && row + 8 * i < a.n) {
        zero = (int)section_bits(a.groups, LPG_SECTION_ZEROS, a.groups.zero_type, a.groups.group, row + 8 * i, 0);
      }
      own[i] = a.w_line.offset - zero;
    }
  }
};

/* Writes the warpgroup's sums of a work tile to the CTAs that store them, with what the offsets add. With weights s w +
 * a (a: offset less zero) and X r x + b, where w and x are the bytes that were multiplied,
 *
 *   sum (s w + a) (r x + b) = s r sum(w x) + s b sum(w) + a r sum(x) + a b k
 *
 * x_sums: sum(x) of the rows of X, NULL if another part of K adds this term; k: for which this part adds the last term;
 * in_round: the lane's first row; part: of all parts of K in the cluster. */
template <int Sums>
__device__ inline void send_sums(const skinny8_args &a, const int (&sum)[Sums], const int (&code_sum)[2],
                                 const int (&own)[2], const int32_t *x_sums, int k, int in_round, int part,
                                 const int32_t *partials) {
  const int lane = threadIdx.x % 32, count = a.plan.share, pitch = a.plan.pitch;
  uint32_t more[2], by_sum[2], to[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    more[i] = (uint32_t)code_sum[i] + (uint32_t)__shfl_xor_sync(0xffffffffu, code_sum[i], 1);
    more[i] += __shfl_xor_sync(0xffffffffu, more[i], 2);
    more[i] = (uint32_t)a.x_line.offset * (more[i] * (uint32_t)a.w_line.step + (uint32_t)own[i] * (uint32_t)k);
    by_sum[i] = (uint32_t)(own[i] * a.x_line.step);
    const int row = in_round + 8 * i;
    const uint32_t place =
        shared_address(partials) + ((part * (Sums * 2) + lane % 4 * 2) * pitch + (unsigned)row % (unsigned)count) * 4;
    to[i] = address_in_block(place, (unsigned)row / (unsigned)count);
  }
  const uint32_t step = (uint32_t)(a.x_line.step * a.w_line.step);
#pragma unroll
  for (int j = 0; j < Sums / 4; j++) {
    const int2 x_sum = x_sums ? *(const int2 *)(x_sums + j * 8 + lane % 4 * 2) : make_int2(0, 0);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t value =
          step * (uint32_t)sum[4 * j + i] + more[i / 2] + by_sum[i / 2] * (uint32_t)(i % 2 ? x_sum.y : x_sum.x);
      store_at(to[i / 2] + i % 2 * pitch * 4, value);
    }
    to[0] += 8 * pitch * 4;
    to[1] += 8 * pitch * 4;
  }
}

/* Not inlined: it is much code, and a kernel as short as this waits for the instructions that it fetches. */
static __device__ __noinline__ void store_one(const epilogue_args &e, int x_row, int row, int integer, float real) {
  if (e.y_type == LPGEMM_I32) {
    store_integer(e, x_row, row, integer);
  } else {
    store_real(e, x_row, row, real);
  }
}

/* Adds the partial sums of the CTA's rows by x_rows rows of X from first_x_row on, and stores the outputs. A thread
 * has four rows of W of one row of X at a time. */
template <int TileM>
__device__ inline void store_rows(const skinny8_args &a, const skinny8_output &out, int first_x_row, int x_rows,
                                  const float *scales, const float *x_scales, const int32_t *partials) {
  const epilogue_args &e = a.epilogue;
  const int all = a.plan.split_k * a.plan.parts, fours = out.count / 4, pitch = a.plan.pitch;
  const int first = threadIdx.x % fours * 4, row = out.first_row + out.first + first;
  const bool neighbours = e.only_scales && lpg_bytes(e.y_type) == 2 && ((uintptr_t)e.y | e.ldy * 2) % 8 == 0;
  if (row >= a.n) return;
  const float4 scale = *(const float4 *)(scales + first);
  for (int x_row = threadIdx.x / fours; x_row < x_rows; x_row += skinny8_threads / fours) {
    const int m = first_x_row + x_row;
    int4 sum = make_int4(0, 0, 0, 0);
#pragma unroll 4
    for (int part = 0; part < all; part++) {
      const int4 some = *(const int4 *)(partials + (part * TileM + x_row) * pitch + first);
      sum = make_int4(sum.x + some.x, sum.y + some.y, sum.z + some.z, sum.w + some.w);
    }
    const float4 real =
        make_float4((float)sum.x * scale.x, (float)sum.y * scale.y, (float)sum.z * scale.z, (float)sum.w * scale.w);
    if (neighbours && row + 4 <= a.n) {
      store_four(e, (uint16_t *)e.y + m * e.ldy + row, real, x_scales[x_row]);
      continue;
    }
    const int integers[4] = {sum.x, sum.y, sum.z, sum.w};
    const float reals[4] = {real.x, real.y, real.z, real.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (row + i < a.n) store_one(e, m, row + i, integers[i], reals[i]);
    }
  }
}

/* All threads of the cluster, which may be one CTA, wait for each other. */
__device__ inline void meet(int ctas) {
  if (ctas == 1) {
    __syncthreads();
  } else {
    cluster_arrive();
    cluster_wait();
  }
}

template <int Bits, int TileM>
__global__ void __launch_bounds__(skinny8_threads, 1) skinny8_kernel(const __grid_constant__ skinny8_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  constexpr int ahead = TileM > 16 || Bits > 4 ? 1 : 2; /* k blocks */
  const lpg_skinny8_plan &p = a.plan;
  int32_t *const x_sums = (int32_t *)memory;
  float *const x_scales = (float *)(x_sums + TileM), *const scales = x_scales + TileM;
  int32_t *const partials = (int32_t *)(memory + LPG_SKINNY8_HEAD_BYTES);
  const int rank = blockIdx.x % (unsigned)p.split_k, place = blockIdx.x / (unsigned)p.split_k;
  const int cluster = place / (unsigned)p.m_tiles, first_x_row = place % (unsigned)p.m_tiles * TileM;
  const int x_rows = min(a.m - first_x_row, TileM);
  const int warpgroup = same_in_warp(threadIdx.x / 128), lane = threadIdx.x % 32, part = warpgroup % p.parts;
  const int all_blocks = (a.k + LPG_SKINNY8_BLOCK_K - 1) / LPG_SKINNY8_BLOCK_K;
  const int cta_first = rank * p.slice_blocks, cta_blocks = max(min(p.slice_blocks, all_blocks - cta_first), 0);
  const int first = cta_first + part * p.part_blocks;
  pdl_launch_next();
  pdl_wait();
  const bool reads = reads_product(a.epilogue);
  const int blocks = reads ? max(min(p.part_blocks, cta_first + cta_blocks - first), 0) : 0;
  /* The lane's codes of the warp's row tile; NULL if there is none. */
  const auto codes_of = [&](int round) {
    const int tile = (cluster + round * p.clusters) * lpg_skinny8_each(&p) + warpgroup / p.parts;
    const int row_tile = tile * (LPG_SKINNY8_TILE_N / LPG_TILE_ROWS) + threadIdx.x / 32 % 4;
    return row_tile < a.row_tiles ? a.codes + row_tile * a.row_bytes + lane * 16 : nullptr;
  };
  skinny8_words<Bits> words[ahead];
  const float x_scale = reads && (int)threadIdx.x < x_rows ? x_scale_of(a.epilogue, first_x_row + threadIdx.x) : 1.0f;
  if (reads) {
    copy_x<TileM>(a, first_x_row, cta_first * LPG_SKINNY8_BLOCK_K, cta_blocks * 2, shared_address(memory + p.x_at));
  }
  const uint32_t x_place =
      swizzled_place(shared_address(memory + p.x_at)) + part * p.part_blocks * (LPG_SKINNY8_BLOCK_K * TileM / 16);
#pragma unroll 1
  for (int round = 0; round < p.rounds; round++) {
    const uint8_t *const codes = codes_of(round);
#pragma unroll
    for (int i = 0; i < ahead; i++) {
      if (codes && i < blocks) words[i].load(a, codes, first + i);
    }
    const skinny8_output out(a, round, rank, cluster);
    skinny8_scales scale_data;
    scale_data.load(a, out, warpgroup);
    if (round == 0) { /* weights, scales and X are in flight at the same time */
      wait_copies<0>();
      if ((int)threadIdx.x < x_rows) x_scales[threadIdx.x] = x_scale;
      __syncthreads();
      if (reads) order_x<TileM>(a, x_rows, cta_first * LPG_SKINNY8_BLOCK_K, cta_blocks * 2, memory + p.x_at, x_sums);
      fence_for_tensor_cores();
      meet(p.split_k); /* the CTAs that will write partial sums here run */
    }
    int sum[TileM / 2], code_sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < TileM / 2; i++) sum[i] = 0;
#pragma unroll 1
    for (int b = 0; b < blocks; b += ahead) {
#pragma unroll
      for (int i = 0; i < ahead; i++) {
        if (b + i >= blocks) break;
        multiply_block<Bits>(a, words[i].word, first + b + i, x_place + (b + i) * (LPG_SKINNY8_BLOCK_K * TileM / 16),
                             sum, code_sum);
        if (codes && b + i + ahead < blocks) words[i].load(a, codes, first + b + i + ahead);
      }
    }
    wgmma_wait<0>();
    if ((int)threadIdx.x < out.count) scales[threadIdx.x] = scale_data.scale;
    send_sums(a, sum, code_sum, scale_data.own, reads && part == 0 ? x_sums : nullptr,
              reads && rank == 0 && part == 0 ? a.k : 0,
              warpgroup / p.parts * LPG_SKINNY8_TILE_N + threadIdx.x / 32 % 4 * LPG_TILE_ROWS + lane / 4,
              rank * p.parts + part, partials);
    meet(p.split_k); /* all partial sums are there */
    store_rows<TileM>(a, out, first_x_row, x_rows, scales, x_scales, partials);
    if (round + 1 < p.rounds) meet(p.split_k); /* the partial sums have been read, and may be overwritten */
  }
}

/* ---- on the host ---- */

template <int Bits, int TileM>
static lpgemm_status_t run_skinny8(const lpg_call &call) {
  const lpg_packed &weights = *call.problem.weights;
  skinny8_args a = {};
  a.plan = plan_of<lpg_skinny8_plan>(call);
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)weights.row_tiles;
  a.n = (int32_t)weights.desc.n;
  a.m = (int32_t)call.problem.m;
  a.k = (int32_t)weights.desc.k;
  a.x = (const uint8_t *)call.x;
  a.ldx = call.ldx;
  a.flip = lpg_bits(call.problem.x_type) == 8 && lpg_kind(call.problem.x_type) != LPGEMM_KIND_INT ? 0x80808080u : 0u;
  a.w_line = lpg_weight_line(weights.desc.type, 1);
  a.x_line = lpg_x_line(call.problem.x_type, 1);
  a.groups = make_groups(call);
  a.epilogue = make_epilogue(call);
  return launch_planned(call, (const void *)skinny8_kernel<Bits, TileM>, a, true);
}

template <int Bits, int TileM>
static lpgemm_status_t load_skinny8(const lpg_device *device) {
  return load_kernels(device, skinny8_kernel<Bits, TileM>);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_SKINNY8(symbol, bits, x_rows)                                                                   \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_skinny8<bits, x_rows>(*call); } \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) { return lpg::load_skinny8<bits, x_rows>(device); }
