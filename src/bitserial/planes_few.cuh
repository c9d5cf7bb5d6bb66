/* Integer weights by few rows of integer X (tokens), as bytes on the tensor cores of sm_90a: weights are the operand in
 * registers, codes as they are packed but for a shift and a mask, X is in shared memory.
 *
 *   all warps bring the block's slice of X to shared memory, and add up its tokens
 *   round after round:
 *     a warp has 16 rows: loads packed words a few blocks of columns ahead, makes bytes of them, multiplies
 *     the group's sums to shared memory; when the cluster's are all there, each block adds up those of some rows, and
 *     stores them */
#pragma once

#include "../cuda/cuda.h"
#include "../kernels/epilogue.cuh"
#include "../kernels/groups.cuh"
#include "../kernels/prim/async.cuh"
#include "../kernels/prim/barrier.cuh"
#include "../kernels/prim/cluster.cuh"
#include "../kernels/prim/logic.cuh"
#include "../kernels/prim/wgmma.cuh"
#include "planes_few_plan.h"
#include "planes_slice.h"
#include "planes_x.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int few_threads = 128 * LPG_FEW_GROUPS;

struct few_args {
  lpg_few_plan plan;
  const uint8_t *codes;
  int64_t row_bytes;   /* of the codes of a row tile */
  int32_t row_vectors; /* of them, 512 bytes each */
  int32_t row_tiles, n, m, k;
  planes_x_codes x;
  lpg_planes_line w_line, x_line;
  groups_args groups;
  epilogue_args epilogue;
};

/* What stands at the head of shared memory. */
struct few_head {
  int32_t x_part[64], x_sum[64]; /* of tokens: of the block's slice, of all */
  int32_t own[LPG_FEW_ROWS * LPG_FEW_GROUPS]; /* offset less zero, of the rows that the block stores in a round */
  float scale[LPG_FEW_ROWS * LPG_FEW_GROUPS];
};
static_assert(sizeof(few_head) <= LPG_FEW_HEAD_BYTES, "the head's bytes");

/* The packed words of a block of columns that a lane has, loaded ahead. */
template <int Bits>
struct few_words {
  uint32_t word[4 * Bits];

  __device__ void load(const few_args &a, const uint8_t *codes, int block) {
#pragma unroll
    for (int v = 0; v < Bits; v++) {
#pragma unroll
      for (int i = 0; i < 4; i++) word[4 * v + i] = 0;
      load16_if_more(a.row_vectors, block * Bits + v, codes + (int64_t)(block * Bits + v) * 512, word + 4 * v);
    }
  }
};

/* The slice of X, in the order of columns and the places that the tensor cores want, and the sums of its tokens. A warp
 * takes a token at a time, 512 columns at once. */
template <int Tokens>
__device__ inline void bring_x(const few_args &a, int first_k, int stages, uint8_t *to, few_head &head) {
  const int lane = threadIdx.x % 32, piece = lane % 8;
  for (int token = threadIdx.x / 32; token < Tokens; token += few_threads / 32) {
    const uint8_t *const row = a.x.row(min(token, a.m - 1));
    const bool aligned = (uintptr_t)row % 16 == 0;
    int sum = 0;
    for (int stage = lane / 8; stage < stages; stage += 4) {
      uint32_t word[4];
      a.x.load_sixteen(row, token < a.m ? first_k + stage * 128 + piece * 16 : a.k, aligned, word);
#pragma unroll
      for (int i = 0; i < 4; i++) sum = __dp4a((int)word[i], 0x01010101, sum);
      *(uint4 *)(to + stage * (Tokens * 128) + token * 128 + (piece ^ token % 8) * 16) =
          make_uint4(lpg_planes_bytes_of_x(word, 0), lpg_planes_bytes_of_x(word, 1), lpg_planes_bytes_of_x(word, 2),
                     lpg_planes_bytes_of_x(word, 3));
    }
    sum = __reduce_add_sync(0xffffffffu, sum);
    if (lane == 0) head.x_part[token] = sum;
  }
}

/* Those bytes of a word of 16 columns that are columns of the row, of which the half of a block has `left`. */
__device__ inline uint32_t bytes_there(int t, int step, int left) {
  uint32_t ones = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) ones |= (uint32_t)(lpg_planes_column(t, 8 * i + step) < left) << 8 * i;
  return ones;
}

/* A block of columns: the words become free as they are made bytes. x: its first stage's place; code_sum: of the
 * lane's two rows, where it is needed. */
template <int Bits, int Sums>
__device__ inline void multiply_block(const few_args &a, const uint32_t *word, int block, uint32_t x, int (&sum)[Sums],
                                      int (&code_sum)[2]) {
  constexpr int tokens = Sums * 2, stage_places = tokens * 128 / 16;
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    uint32_t bytes[4][4];
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const uint32_t stored = lpg_planes_bytes_of_weights(Bits, word + half * Bits * 2 + i % 2, 2, i / 4 * 2 + i / 2 % 2);
      bytes[i / 4][i % 4] = (uint32_t)keep((int)(Bits == 8 ? stored ^ 0x80808080u : stored)); /* before the fence */
    }
    if (a.x_line.offset != 0) {
      const int left = a.k - block * LPG_FEW_BLOCK_K - half * LPG_PLANES_HALF_K;
#pragma unroll
      for (int i = 0; i < 16; i++) {
        const uint32_t ones = left >= LPG_PLANES_HALF_K ? 0x01010101u : bytes_there(t, i / 4 * 2 + i / 2 % 2, left);
        code_sum[i % 2] = __dp4a((int)bytes[i / 4][i % 4], (int)ones, code_sum[i % 2]);
      }
    }
    wgmma_wait<0>();
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) wgmma_i8_few::multiply(sum, bytes[i], swizzled_rows(x + half * stage_places + i * 2));
    wgmma_commit();
  }
}

/* The group's sums of an item to shared memory, with what the offset of X adds to them. */
template <int Sums>
__device__ inline void leave_sums(const few_args &a, const int (&sum)[Sums], const int (&code_sum)[2], int32_t *area) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * LPG_TILE_ROWS + lane / 4;
  int more[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    more[i] = code_sum[i] + __shfl_xor_sync(0xffffffffu, code_sum[i], 1);
    more[i] += __shfl_xor_sync(0xffffffffu, more[i], 2);
    more[i] *= a.x_line.offset * a.w_line.step;
  }
  const int step = a.x_line.step * a.w_line.step;
#pragma unroll
  for (int i = 0; i < Sums; i++) {
    const int token = i / 4 * 8 + lane % 4 * 2 + i % 2, upper = i / 2 % 2;
    area[token * LPG_FEW_PITCH + row + 8 * upper] = step * sum[i] + more[upper];
  }
}

/* A number of the block of that rank in the cluster, from its place in this one's shared memory. */
__device__ inline int load_of_block(const int32_t *place, int rank) {
  uint32_t remote;
  int value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(place)), "r"(rank));
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(remote) : "memory");
  return value;
}

/* Which rows of a round's items the block stores: all items' rows one after the other, its share of them. */
struct few_share {
  int first, count, first_row; /* first: of the round's rows; first_row: of W, where the round begins */

  __device__ few_share(const few_args &a, int round, int rank) {
    const int rows = LPG_FEW_ROWS * lpg_few_each(&a.plan), cluster = blockIdx.x / (unsigned)a.plan.slices;
    count = rows / a.plan.slices;
    first = rank * count;
    first_row = (cluster + round * a.plan.clusters) * rows;
  }
};

/* Zeros and scales of the rows that the block will store. */
__device__ inline void load_rows(const few_args &a, const few_share &share, few_head &head) {
  for (int i = threadIdx.x; i < share.count; i += few_threads) {
    const int row = share.first_row + share.first + i;
    const group_numbers g = row < a.n ? group_at(a.groups, row, 0) : group_numbers{0.0, 0.0};
    head.own[i] = a.w_line.offset - (int)g.zero;
    head.scale[i] = (float)g.scale;
  }
}

template <int Tokens>
__device__ inline void store_rows(const few_args &a, const few_share &share, const few_head &head,
                                  const int32_t *areas) {
  const epilogue_args &e = a.epilogue;
  const int parts = a.plan.parts, slices = a.plan.slices;
  for (int i = threadIdx.x; i < share.count * min(Tokens, a.m); i += few_threads) {
    const int token = i / share.count, r = i % share.count, in_round = share.first + r;
    const int row = share.first_row + in_round;
    if (row >= a.n) continue;
    const int32_t *const place = areas + in_round / LPG_FEW_ROWS * parts * (Tokens * LPG_FEW_PITCH) +
                                 token * LPG_FEW_PITCH + in_round % LPG_FEW_ROWS;
    uint32_t sum = (uint32_t)head.own[r] *
                   ((uint32_t)a.x_line.step * (uint32_t)head.x_sum[token] + (uint32_t)a.x_line.offset * (uint32_t)a.k);
#pragma unroll 4
    for (int s = 0; s < slices * parts; s++) {
      sum += (uint32_t)load_of_block(place + s % parts * (Tokens * LPG_FEW_PITCH), s / parts);
    }
    if (e.y_type == LPGEMM_I32) {
      store_integer(e, token, row, (int32_t)sum);
    } else {
      store_real(e, token, row, (float)(int32_t)sum * head.scale[r]);
    }
  }
}

template <int Bits, int Tokens>
__global__ void __launch_bounds__(few_threads, 1) few_kernel(const __grid_constant__ few_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  constexpr int ahead = Bits <= 4 ? 2 : 1; /* blocks of columns */
  const lpg_few_plan &p = a.plan;
  few_head &head = *(few_head *)memory;
  int32_t *const areas = (int32_t *)(memory + LPG_FEW_HEAD_BYTES);
  const int rank = blockIdx.x % (unsigned)p.slices, cluster = blockIdx.x / (unsigned)p.slices;
  const int group = same_in_warp(threadIdx.x / 128), lane = threadIdx.x % 32, part = group % p.parts;
  const int all_blocks = (a.k + LPG_FEW_BLOCK_K - 1) / LPG_FEW_BLOCK_K;
  const int slice_first = rank * p.slice_blocks, slice_blocks = max(min(p.slice_blocks, all_blocks - slice_first), 0);
  const int first = slice_first + part * p.part_blocks;
  const bool reads = reads_product(a.epilogue);
  const int blocks = reads ? max(min(p.part_blocks, slice_first + slice_blocks - first), 0) : 0;
  const auto codes_of = [&](int round) { /* of the warp's row tile; NULL if there is none */
    const int item = (cluster + round * p.clusters) * lpg_few_each(&p) + group / p.parts;
    const int row_tile = item * (LPG_FEW_ROWS / LPG_TILE_ROWS) + threadIdx.x / 32 % 4;
    return row_tile < a.row_tiles ? a.codes + row_tile * a.row_bytes + lane * 16 : nullptr;
  };
  few_words<Bits> words[ahead];
  const auto load_first = [&](const uint8_t *codes) {
#pragma unroll
    for (int i = 0; i < ahead; i++) {
      if (codes && i < blocks) words[i].load(a, codes, first + i);
    }
  };
  const uint8_t *codes = codes_of(0);
  load_first(codes);
  if (reads) bring_x<Tokens>(a, slice_first * LPG_FEW_BLOCK_K, slice_blocks * 2, memory + p.x_at, head);
  fence_for_tensor_cores();
  __syncthreads();
  const uint32_t x_place = swizzled_place(shared_address(memory + p.x_at)) +
                           part * p.part_blocks * (LPG_FEW_BLOCK_K * Tokens / 16);
#pragma unroll 1
  for (int round = 0; round < p.rounds; round++) {
    const few_share share(a, round, rank);
    load_rows(a, share, head);
    int sum[Tokens / 2], code_sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < Tokens / 2; i++) sum[i] = 0;
#pragma unroll 1
    for (int b = 0; b < blocks; b += ahead) {
#pragma unroll
      for (int i = 0; i < ahead; i++) {
        if (b + i >= blocks) break;
        multiply_block<Bits>(a, words[i].word, first + b + i, x_place + (b + i) * (LPG_FEW_BLOCK_K * Tokens / 16), sum,
                             code_sum);
        if (codes && b + i + ahead < blocks) words[i].load(a, codes, first + b + i + ahead);
      }
    }
    wgmma_wait<0>();
    codes = round + 1 < p.rounds ? codes_of(round + 1) : nullptr;
    load_first(codes);
    leave_sums(a, sum, code_sum, areas + group * (Tokens * LPG_FEW_PITCH));
    cluster_arrive(); /* the sums of all are there */
    cluster_wait();
    if (round == 0) {
      if (threadIdx.x < Tokens) {
        uint32_t of_token = 0;
        for (int s = 0; reads && s < p.slices; s++) of_token += (uint32_t)load_of_block(head.x_part + threadIdx.x, s);
        head.x_sum[threadIdx.x] = (int32_t)of_token;
      }
      __syncthreads();
    }
    store_rows<Tokens>(a, share, head, areas);
    cluster_arrive(); /* and have been read, before they are overwritten or lost */
    cluster_wait();
  }
}

/* ---- on the host ---- */

template <int Bits, int Tokens>
static lpgemm_status_t run_few(const lpg_call &call) {
  const lpg_plan &weights = *call.problem.plan;
  few_args a = {};
  LPG_CHECK(lpg_few_make_plan(&weights, Tokens, call.device, &a.plan), LPGEMM_INTERNAL_ERROR,
            "a kernel was chosen that has no plan on %s", call.device->name);
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)weights.row_tiles;
  a.n = (int32_t)weights.desc.n;
  a.k = (int32_t)weights.desc.k;
  a.x = x_codes_of(call, 1);
  a.w_line = lpg_planes_weight_line(weights.desc.type, 1);
  a.x_line = lpg_planes_x_line(call.problem.x_type, 1);
  a.groups = make_groups(call);
  a.epilogue = make_epilogue(call);
  for (int64_t m = 0; m < call.problem.m; m += Tokens) {
    a.m = (int32_t)(call.problem.m - m < Tokens ? call.problem.m - m : Tokens);
    LPG_TRY(launch_cluster((const void *)few_kernel<Bits, Tokens>, dim3((unsigned)(a.plan.clusters * a.plan.slices)),
                           a.plan.slices, few_threads, (size_t)a.plan.shared_bytes, call.stream, a));
    a.x.x += Tokens * a.x.ldx;
    skip_rows(a.epilogue, Tokens);
  }
  return LPGEMM_SUCCESS;
}

template <int Bits, int Tokens>
static lpgemm_status_t prepare_few() {
  int device, shared;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return allow_shared((const void *)few_kernel<Bits, Tokens>, (size_t)shared);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_FEW(symbol, bits, tokens)                                                                           \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_few<bits, tokens>(*call); }         \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_few<bits, tokens>(); }
