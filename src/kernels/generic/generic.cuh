/* The generic kernel: any type, any shape, every GPU from sm_80 on. Slow, plainly right, the last in every list.
 *
 *   for every chunk of K:
 *     dequantise the chunk of tile_n rows of W to fp32 in shared memory, scaled
 *     convert the chunk of tile_m rows of X to fp32 in shared memory
 *     multiply the two in fp32
 *   add up the sums of the threads, epilogue
 *
 * Stacks of experts, and rows of W in pairs, have instances of their own: an item is a tile of rows of X of one expert,
 * and the arguments, with what is that expert's, lie in shared memory.
 *
 * A code's value comes from a table of 2^bits floats in shared memory, so all types are alike. Both operands lie
 * k-major with padded rows. A thread sums at most 128 k of a chunk before it adds to its total: integer sums are below
 * 2^24 until then, exact in fp32, and the totals are int32. */
#pragma once

#include "../../cuda/cuda.h"
#include "../../layouts/unit.h"
#include "../epilogue/store_pairs.cuh"
#include "../operand/scales_any.cuh"
#include "../plan/expert_rows.cuh"
#include "../prim/shared.cuh"
#include "generic_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The kernel's arguments. */
struct generic_args {
  lpgemm_dtype_t type, x_type;
  float codebook[16];
  int64_t m, n, k, ldx;
  int64_t row_tiles, k_tiles;
  const uint8_t *codes;
  groups_args groups;
  const void *x;
  int integer;
  epilogue_args epilogue;
};

/* A stack: offsets of rows of X, and what differs from expert to expert. experts 0: one matrix, with rows in pairs. */
struct generic_stack {
  int experts;
  const int32_t *offsets;
  const uint8_t *blob;
  int64_t stride, bias_bytes; /* from one expert's to the next */
  const float *row_scales;
};

constexpr int run_k = 128; /* k's of a row that a thread dequantises at once: whole units of every width */

template <int RowTiles, int TileM>
struct generic_shape {
  static constexpr int threads = 256;
  static constexpr int tile_n = LPG_TILE_ROWS * RowTiles;
  static constexpr int tile_m = TileM; /* rows of X */
  static constexpr int chunk_k = run_k * threads / (2 * LPG_LANES * RowTiles);
  static constexpr int w_stride = tile_n + (RowTiles == 1 ? 2 : 4), x_stride = tile_m + (RowTiles == 1 ? 0 : 4);
  /* A thread multiplies tile_w rows of W by tile_x rows of X, for every split_k-th k. */
  static constexpr int tile_w = RowTiles == 1 ? 1 : 4, tile_x = RowTiles == 1 ? 8 : 4;
  static constexpr int blocks_w = tile_n / tile_w, blocks_x = tile_m / tile_x;
  static constexpr int split_k = threads / (blocks_w * blocks_x);
  static constexpr size_t shared_bytes = (256 + chunk_k * (w_stride + x_stride)) * sizeof(float);
  static_assert(threads % (blocks_w * blocks_x) == 0, "the blocks must divide the threads");
  static_assert(shared_bytes + sizeof(generic_args) <= LPG_GENERIC_SHARED, "the planner knows how much it is");
  static_assert(chunk_k * (w_stride + x_stride) >= split_k * tile_n * tile_m, "the sums reuse the operands' memory");
  static_assert(chunk_k % split_k == 0 && chunk_k / split_k <= 128, "integer sums of a chunk must be exact in fp32");
};

/* Not inlined: it is full of switches over types, and rarely called. */
static __device__ __noinline__ group_scales called_group_at(const groups_args &a, int64_t row, int64_t k) {
  return group_at(a, row, k);
}

/* With a minimum, value * scale may nearly cancel it, so neither is rounded before the sum. Without one the rounding
 * errors are relative to the weight. */
__device__ inline float weight_of(float value, const group_scales &group, bool minimum) {
  if (minimum) return (float)fma((double)value, group.scale, group.zero);
  return (value - (float)group.zero) * (float)group.scale;
}

/* Dequantises the unit that starts at k0 of the lane's row, to w[k][row]; group: that of k0. */
template <int Bits, class Shape>
__device__ inline void dequantise_unit(const generic_args &a, const float *values, int64_t row, int64_t k0, int lane,
                                       int row_half, group_scales &group, float *w) {
  constexpr int tile_k = lpg_tile_k(Bits), words = lpg_unit_words(Bits), unit_k = 4 * lpg_unit_codes(Bits);
  const int first_word = (int)(k0 % tile_k) / unit_k * words;
  const uint8_t *tile = a.codes + lpg_tile_offset(Bits, a.k_tiles, row / LPG_TILE_ROWS, k0 / tile_k);
  uint32_t word[words];
#pragma unroll
  for (int i = 0; i < words; i++) {
    word[i] = *(const uint32_t *)(tile + lpg_word_offset(lane, 2 * (first_word + i) + row_half));
  }
#pragma unroll
  for (int pair = 0; pair < lpg_unit_codes(Bits) / 2; pair++) {
    const int64_t step_k = k0 + pair / 2 * LPG_STEP_K; /* groups are multiples of 16 k */
    if (pair % 2 == 0 && (uint32_t)step_k % (uint32_t)a.groups.group.k == 0)
      group = called_group_at(a.groups, row, step_k);
    const uint32_t codes = lpg_unit_pair(Bits, word, 1, pair);
#pragma unroll
    for (int odd = 0; odd < 2; odd++) {
      const int k = pair / 2 * LPG_STEP_K + pair % 2 * 8 + 2 * (lane % 4) + odd;
      const float value = values[codes >> 16 * odd & 0xffffu];
      const float weight = weight_of(value, group, a.groups.zero == LPGEMM_ZERO_MINIMUM);
      w[k * Shape::w_stride] = k0 + k < a.k ? weight : 0.0f;
    }
  }
}

/* A thread dequantises run_k k's of one of the two rows of its lane. */
template <int Bits, class Shape>
__device__ inline void dequantise_chunk(const generic_args &a, const float *values, int64_t first_row_tile,
                                        int64_t chunk_k0, float *w) {
  constexpr int row_tiles = Shape::tile_n / LPG_TILE_ROWS, unit_k = 4 * lpg_unit_codes(Bits);
  const int lane = threadIdx.x % 32, row_half = threadIdx.x / 32 % 2, tile = threadIdx.x / 64 % row_tiles;
  const int k_in_chunk = threadIdx.x / (64 * row_tiles) * run_k,
            row_in_block = tile * LPG_TILE_ROWS + lane / 4 + 8 * row_half;
  const int64_t row = first_row_tile * LPG_TILE_ROWS + row_in_block, k0 = chunk_k0 + k_in_chunk;
  float *to = w + k_in_chunk * Shape::w_stride + row_in_block;
  const bool inside = first_row_tile + tile < a.row_tiles;
  group_scales group = {};
  if (inside && k0 < a.k) group = called_group_at(a.groups, row, k0);
#pragma unroll
  for (int k = 0; k < run_k; k += unit_k) {
    if (inside && k0 + k < a.k) {
      dequantise_unit<Bits, Shape>(a, values, row, k0 + k, lane, row_half, group, to + k * Shape::w_stride);
    } else {
      for (int i = 2 * (lane % 4); i < unit_k; i += i % 2 ? 7 : 1) to[(k + i) * Shape::w_stride] = 0.0f; /* its k's */
    }
  }
}

/* A thread takes 8 k of a row; neighbouring threads take neighbouring rows, which lie in different banks. */
template <lpgemm_dtype_t Type, class Shape>
__device__ inline void load_x_of(const generic_args &a, int64_t m0, int64_t k0, float *x) {
  for (int i = threadIdx.x; i < Shape::tile_m * Shape::chunk_k / 8; i += Shape::threads) {
    const int m = i % Shape::tile_m, k = i / Shape::tile_m * 8;
    const lpgemm_dtype_t type = Type ? Type : a.x_type;
    const int64_t first = (m0 + m) * a.ldx + k0 + k, left = m0 + m < a.m ? a.k - (k0 + k) : 0;
    const void *from = (const uint8_t *)a.x + first * lpg_bytes(type);
    alignas(16) uint16_t half[8];
    const bool vector = lpg_bytes(type) == 2 && left >= 8 && (uintptr_t)from % 16 == 0;
    if (vector) *(uint4 *)half = *(const uint4 *)from;
#pragma unroll
    for (int j = 0; j < 8; j++) {
      x[(k + j) * Shape::x_stride + m] = j >= left ? 0.0f : vector ? lpg_load(type, half, j) : lpg_load(type, from, j);
    }
  }
}

template <class Shape>
__device__ inline void load_x(const generic_args &a, int64_t m0, int64_t k0, float *x) {
  switch (a.x_type) { /* the common types without a switch in the loop */
    case LPGEMM_F16: load_x_of<LPGEMM_F16, Shape>(a, m0, k0, x); break;
    case LPGEMM_BF16: load_x_of<LPGEMM_BF16, Shape>(a, m0, k0, x); break;
    default: load_x_of<0, Shape>(a, m0, k0, x); break;
  }
}

/* A thread's sums: fp32, or int32 in the same registers. */
template <class Shape>
struct generic_sums {
  float total[Shape::tile_w][Shape::tile_x];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < Shape::tile_w; i++) {
#pragma unroll
      for (int j = 0; j < Shape::tile_x; j++) total[i][j] = 0.0f; /* the same bits are int32 zero */
    }
  }

  __device__ void add(const float (&sum)[Shape::tile_w][Shape::tile_x], int integer) {
#pragma unroll
    for (int i = 0; i < Shape::tile_w; i++) {
#pragma unroll
      for (int j = 0; j < Shape::tile_x; j++) {
        total[i][j] = integer ? __int_as_float(__float_as_int(total[i][j]) + (int)sum[i][j]) : total[i][j] + sum[i][j];
      }
    }
  }
};

template <class Shape>
__device__ void multiply_chunk(const float *w, const float *x, int block_w, int block_x, int k_part,
                               float (&sum)[Shape::tile_w][Shape::tile_x]) {
#pragma unroll 4
  for (int k = k_part; k < Shape::chunk_k; k += Shape::split_k) {
    float wk[Shape::tile_w], xk[Shape::tile_x];
#pragma unroll
    for (int i = 0; i < Shape::tile_w; i++) wk[i] = w[k * Shape::w_stride + block_w * Shape::tile_w + i];
#pragma unroll
    for (int j = 0; j < Shape::tile_x; j++) xk[j] = x[k * Shape::x_stride + block_x * Shape::tile_x + j];
#pragma unroll
    for (int i = 0; i < Shape::tile_w; i++) {
#pragma unroll
      for (int j = 0; j < Shape::tile_x; j++) sum[i][j] = fmaf(wk[i], xk[j], sum[i][j]);
    }
  }
}

/* Adds up the sums of the threads that split K, in a fixed order, and stores the work tile. */
template <class Shape, bool Stack>
__device__ void finish(const generic_args &a, const generic_sums<Shape> &sums, int block_w, int block_x, int k_part,
                       int64_t row0, int64_t m0, float *scratch) {
  constexpr int outputs = Shape::tile_n * Shape::tile_m;
#pragma unroll
  for (int i = 0; i < Shape::tile_w; i++) {
#pragma unroll
    for (int j = 0; j < Shape::tile_x; j++) {
      const int at = (block_x * Shape::tile_x + j) * Shape::tile_n + block_w * Shape::tile_w + i;
      scratch[k_part * outputs + at] = sums.total[i][j];
    }
  }
  __syncthreads();
  const auto sum_of = [&](int i) {
    float sum = scratch[i];
    for (int s = 1; s < Shape::split_k; s++) {
      const float part = scratch[s * outputs + i];
      sum = a.integer ? __int_as_float(__float_as_int(sum) + __float_as_int(part)) : sum + part;
    }
    return sum;
  };
  if (Stack && a.epilogue.paired) {
    const epilogue_args &e = a.epilogue;
    const auto scaled_sum_of = [&](int i) {
      const float scale = e.row_scales ? e.row_scales[row0 + i % Shape::tile_n] : 1.0f;
      return sum_of(i) * (e.global_scale * scale);
    };
    for (int i = threadIdx.x; i < outputs / 2; i += Shape::threads) {
      const int output = i % (Shape::tile_n / 2), x_row = i / (Shape::tile_n / 2);
      const int gate = x_row * Shape::tile_n + output / 8 * LPG_TILE_ROWS + output % 8;
      const int64_t column = row0 / 2 + output;
      if (2 * column >= a.n || m0 + x_row >= a.m) continue;
      store_pair(e, m0 + x_row, (int)column, (int)(a.n / 2), 0, scaled_sum_of(gate), scaled_sum_of(gate + 8));
    }
    __syncthreads();
    return;
  }
  for (int i = threadIdx.x; i < outputs; i += Shape::threads) {
    const int64_t row = row0 + i % Shape::tile_n, m = m0 + i / Shape::tile_n;
    if (row >= a.n || m >= a.m) continue;
    const float sum = sum_of(i);
    if (a.integer) {
      store_integer(a.epilogue, m, row, __float_as_int(sum));
    } else {
      store_real(a.epilogue, m, row, sum);
    }
  }
  __syncthreads();
}

/* Multiplies work tile m0 of the row tiles of a CTA. */
template <int Bits, class Shape, bool Stack>
__device__ inline void multiply_tile(const generic_args &a, int64_t k_end, int64_t row_tile, int64_t m0,
                                     float *memory) {
  float *const values = memory, *const w = memory + 256, *const x = w + Shape::chunk_k * Shape::w_stride;
  const int block_w = threadIdx.x % Shape::blocks_w, block_x = threadIdx.x / Shape::blocks_w % Shape::blocks_x;
  const int k_part = threadIdx.x / (Shape::blocks_w * Shape::blocks_x);
  generic_sums<Shape> sums;
  sums.clear();
  for (int64_t k0 = 0; k0 < k_end; k0 += Shape::chunk_k) {
    __syncthreads();
    dequantise_chunk<Bits, Shape>(a, values, row_tile, k0, w);
    load_x<Shape>(a, m0, k0, x);
    __syncthreads();
    float sum[Shape::tile_w][Shape::tile_x] = {};
    multiply_chunk<Shape>(w, x, block_w, block_x, k_part, sum);
    sums.add(sum, a.integer);
  }
  __syncthreads();
  finish<Shape, Stack>(a, sums, block_w, block_x, k_part, row_tile * LPG_TILE_ROWS, m0, w);
}

template <int Bits, class Shape>
__device__ inline void fill_values(const generic_args &a, float *values) {
  for (int code = threadIdx.x; code < 1 << Bits; code += Shape::threads) {
    values[code] = lpg_code_value(a.type, (uint32_t)code ^ lpg_stored_flip(a.type), a.codebook);
  }
}

template <int Bits, int RowTiles, int TileM>
__global__ void __launch_bounds__(256, RowTiles == 1 ? 4 : 3) generic_kernel(const generic_args a) {
  using shape = generic_shape<RowTiles, TileM>;
  LPG_SHARED_MEMORY(float, 4);
  fill_values<Bits, shape>(a, memory);
  const int64_t k_end = reads_product(a.epilogue) ? a.k : 0;
  for (int64_t m0 = (int64_t)blockIdx.y * TileM; m0 < a.m; m0 += (int64_t)gridDim.y * TileM) {
    multiply_tile<Bits, shape, false>(a, k_end, (int64_t)blockIdx.x * RowTiles, m0, memory);
  }
}

/* What is an expert's own. */
__device__ inline void set_expert(const generic_args &a, const generic_stack &stack, int expert, generic_args &own) {
  const int64_t before = expert * stack.stride;
  own.codes = a.codes + before;
  for (int i = 0; i < LPG_SECTIONS; i++) own.groups.section[i] = a.groups.section[i] + before;
  epilogue_args &e = own.epilogue;
  e.global_scale = lpg_expert_scale(stack.blob + before);
  if (stack.row_scales) e.row_scales = (const float *)((const uint8_t *)stack.row_scales + before);
  if (e.bias) e.bias = (const uint8_t *)a.epilogue.bias + expert * stack.bias_bytes;
  e.only_sums = e.only_scales = 0; /* row scales came after */
}

template <int Bits, int RowTiles, int TileM>
__global__ void __launch_bounds__(256, RowTiles == 1 ? 4 : 3)
    generic_stack_kernel(const __grid_constant__ generic_args a, const __grid_constant__ generic_stack stack) {
  using shape = generic_shape<RowTiles, TileM>;
  LPG_SHARED_MEMORY(float, 4);
  __shared__ generic_args own;
  const expert_rows rows((uint8_t *)memory + shape::shared_bytes, stack.experts);
  fill_values<Bits, shape>(a, memory);
  if (stack.experts > 0 && threadIdx.x < 32) {
    fill_expert_rows(stack.offsets, stack.experts, (int)a.m, (uint8_t *)memory + shape::shared_bytes,
                     [](int rows) { return (rows + TileM - 1) / TileM; });
  }
  if (threadIdx.x == 0) own = a;
  __syncthreads();
  const int64_t k_end = reads_product(a.epilogue) ? a.k : 0;
  const int64_t tiles = stack.experts > 0 ? rows.first_tile[stack.experts] : lpg_ceil_div(a.m, TileM);
  for (int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    int64_t m0 = tile * TileM;
    if (stack.experts > 0) {
      const int expert = rows.expert_of((int)tile);
      m0 = rows.first_row[expert] + (tile - rows.first_tile[expert]) * TileM;
      if (threadIdx.x == 0) { /* nobody reads the last one's any more */
        set_expert(a, stack, expert, own);
        own.m = rows.first_row[expert + 1];
      }
      __syncthreads();
    }
    multiply_tile<Bits, shape, true>(own, k_end, (int64_t)blockIdx.x * RowTiles, m0, memory);
  }
}

/* ---- on the host ---- */

inline generic_args make_generic_args(const lpg_call &call) {
  const lpg_packed &weights = *call.problem.weights;
  const lpgemm_weight_desc_t &d = weights.desc;
  generic_args a = {};
  a.type = d.type;
  a.x_type = call.problem.x_type;
  for (int i = 0; i < 16; i++) a.codebook[i] = d.codebook[i];
  a.m = call.problem.m;
  a.n = d.n;
  a.k = d.k;
  a.ldx = call.ldx;
  a.row_tiles = weights.row_tiles;
  a.k_tiles = weights.k_tiles;
  a.codes = call.section[LPG_SECTION_CODES];
  a.groups = make_groups(call);
  a.x = call.x;
  a.integer = call.problem.y_type == LPGEMM_I32;
  a.epilogue = make_epilogue(call);
  return a;
}

inline generic_stack make_generic_stack(const lpg_call &call) {
  generic_stack s = {};
  s.experts = call.problem.experts;
  s.offsets = call.offsets;
  s.blob = call.blob;
  s.stride = (int64_t)call.stride;
  s.bias_bytes = call.bias_stride * lpg_bytes(call.bias_type);
  s.row_scales = call.row_scales;
  return s;
}

/* The grid: row tiles by tiles along M, which are more than there are where only the device can count them. */
template <int Rows, int TileM>
inline dim3 generic_grid(const lpg_call &call) {
  const lpg_expected_rows rows = lpg_expected_rows_of(call.problem.m, call.problem.experts);
  const int64_t x_tiles = lpg_most_tiles(&rows, TileM);
  return dim3((unsigned)lpg_ceil_div(call.problem.weights->row_tiles, Rows / LPG_TILE_ROWS),
              (unsigned)(x_tiles < 65535 ? x_tiles : 65535));
}

template <int Bits, int Rows, int TileM>
static lpgemm_status_t run_generic(const lpg_call *call) {
  constexpr int row_tiles = Rows / LPG_TILE_ROWS;
  using shape = generic_shape<row_tiles, TileM>;
  const generic_args args = make_generic_args(*call);
  const dim3 grid = generic_grid<Rows, TileM>(*call);
  if (!call->problem.experts && !call->problem.paired) {
    return launch((const void *)generic_kernel<Bits, row_tiles, TileM>, grid, shape::threads, shape::shared_bytes,
                  call->stream, args);
  }
  return launch((const void *)generic_stack_kernel<Bits, row_tiles, TileM>, grid, shape::threads,
                shape::shared_bytes + (size_t)lpg_expert_rows_bytes(call->problem.experts), call->stream, args,
                make_generic_stack(*call));
}

template <int Bits, int Rows, int TileM>
static lpgemm_status_t load_generic(const lpg_device *device) {
  constexpr int row_tiles = Rows / LPG_TILE_ROWS;
  constexpr size_t bytes = generic_shape<row_tiles, TileM>::shared_bytes;
  LPG_TRY(allow_shared((const void *)generic_kernel<Bits, row_tiles, TileM>, bytes));
  const size_t most = bytes + (size_t)lpg_expert_rows_bytes(LPG_MOST_EXPERTS);
  const size_t room = (size_t)device->shared_memory - sizeof(generic_args);
  return allow_shared((const void *)generic_stack_kernel<Bits, row_tiles, TileM>, most < room ? most : room);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_GENERIC(symbol, bits, rows, columns)                                                                  \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_generic<bits, rows, columns>(call); } \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) {                                            \
    return lpg::load_generic<bits, rows, columns>(device);                                                        \
  }
