/* The generic kernel: any type, any shape, any sm_80+. Slow, obviously right, the last in every list.
 *
 *   for every chunk of columns:
 *     decode the chunk of ROWS weight rows to fp32 in shared memory, scaled
 *     convert the chunk of COLUMNS activation rows to fp32 in shared memory
 *     multiply the two in fp32
 *   combine the threads' sums, apply the epilogue, store
 *
 * A code's value comes from a table of 2^bits numbers in shared memory, so that every type is the same to it. Both
 * operands are stored k-major with padded rows. A chunk has at most 512 columns and a thread sums at most 128 of them
 * before it adds to its total: integer sums stay below 2^24 until then, exact, and go on as int32. */
#pragma once

#include "../cuda/cuda.h"
#include "../layouts/unit.h"
#include "epilogue.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What the kernel reads, by value. */
struct generic_args {
  lpgemm_dtype_t type, scale_type, super_scale_type, zero_type, super_zero_type, x_type;
  lpgemm_zero_t zero;
  float zero_constant;
  float codebook[16];
  int64_t m, n, k, ldx;
  int64_t row_tiles, k_tiles;
  lpg_axis group, super;
  const uint8_t *section[LPG_SECTIONS];
  const void *x;
  int integer;
  epilogue_args epilogue;
};

template <int Bits, int RowTiles, int Columns>
struct generic_shape {
  static constexpr int threads = 256;
  static constexpr int rows = LPG_TILE_ROWS * RowTiles;
  static constexpr int columns = Columns; /* rows of X */
  static constexpr int unit_k = 4 * lpg_unit_codes(Bits);
  /* a unit of every lane and row half is one thread's work: 64 threads a row tile */
  static constexpr int chunk_k = unit_k * threads / (64 * RowTiles) < 32 ? 32 : unit_k * threads / (64 * RowTiles);
  static constexpr int w_stride = rows + 4, x_stride = columns + 4;
  /* each thread multiplies a tile_w x tile_x block for every slices-th column */
  static constexpr int tile_w = RowTiles == 1 ? 1 : 4, tile_x = RowTiles == 1 ? 8 : 4;
  static constexpr int blocks_w = rows / tile_w, blocks_x = columns / tile_x;
  static constexpr int slices = threads / (blocks_w * blocks_x);
  static constexpr int floats = 256 + chunk_k * (w_stride + x_stride);
  static constexpr size_t shared_bytes = floats * sizeof(float);
  static_assert(threads % (blocks_w * blocks_x) == 0, "the blocks must divide the threads");
  static_assert(chunk_k * (w_stride + x_stride) >= slices * rows * columns, "the slices' sums reuse the operands");
  static_assert(chunk_k % slices == 0 && chunk_k / slices <= 256, "integer sums of a chunk must be exact in fp32");
};

/* The value of a section for (row, column k). Not inlined: it is a switch over types, and rarely called. */
static __device__ __noinline__ float section_value(const uint8_t *section, lpgemm_dtype_t type, int64_t axis_k,
                                                   int64_t padded, int64_t row, int64_t k) {
  const uint8_t *at = section + lpg_value_offset(type, padded, row, (uint32_t)k / (uint32_t)axis_k);
  if (type == LPGEMM_UINT(4)) return (float)(*at >> (row % LPG_TILE_ROWS < 8 ? 0 : 4) & 15);
  return lpg_load(type, at, 0);
}

/* A group's value and its super-group's, `absent` and 1 if the matrix has none. */
struct group_value {
  float value, super_value;
};

__device__ inline group_value value_at(const generic_args &a, lpg_section_id id, lpgemm_dtype_t type,
                                       lpg_section_id super_id, lpgemm_dtype_t super_type, int64_t row, int64_t k,
                                       float absent) {
  group_value g = {absent, 1.0f};
  if (type) g.value = section_value(a.section[id], type, a.group.k, a.group.padded, row, k);
  if (super_type) g.super_value = section_value(a.section[super_id], super_type, a.super.k, a.super.padded, row, k);
  return g;
}

/* What a product loses when it is rounded. */
__device__ inline float rounding_of(float a, float b, float product) {
  return product - product == 0.0f ? fmaf(a, b, -product) : 0.0f;
}

/* How a group turns a code's value into a weight: (value - zero) * scale, or value * scale + minimum. The two terms of
 * the second may cancel, so it carries along what the products of two levels lose. */
struct group_terms {
  float scale, super_scale, zero, zero_rest;
};

__device__ inline group_terms terms_at(const generic_args &a, int64_t row, int64_t k) {
  const group_value scale =
      value_at(a, LPG_SECTION_SCALES, a.scale_type, LPG_SECTION_SUPER_SCALES, a.super_scale_type, row, k, 1.0f);
  const group_value zero =
      value_at(a, LPG_SECTION_ZEROS, a.zero_type, LPG_SECTION_SUPER_ZEROS, a.super_zero_type, row, k, a.zero_constant);
  if (a.zero != LPGEMM_ZERO_MINIMUM) return {scale.value * scale.super_value, 1.0f, zero.value, 0.0f};
  const float product = zero.value * zero.super_value;
  return {scale.value, scale.super_value, product, rounding_of(zero.value, zero.super_value, product)};
}

__device__ inline float weight_of(const generic_args &a, const group_terms &g, float value) {
  if (a.zero != LPGEMM_ZERO_MINIMUM) return (value - g.zero) * g.scale;
  if (a.super_scale_type == 0) return fmaf(value, g.scale, g.zero);
  const float scaled = value * g.scale;
  return fmaf(scaled, g.super_scale, g.zero) + fmaf(rounding_of(value, g.scale, scaled), g.super_scale, g.zero_rest);
}

/* Decodes the unit that starts at column k0 of the lane's row, into w[k][row]. */
template <int Bits, class Shape>
__device__ void decode_unit(const generic_args &a, const float *values, int64_t row_tile, int64_t k0, int lane,
                            int row_half, int row_in_block, int k_in_chunk, float *w) {
  constexpr int tile_k = lpg_tile_k(Bits), words = lpg_unit_words(Bits);
  const int64_t row = row_tile * LPG_TILE_ROWS + lane / 4 + 8 * row_half;
  const int first_word = (int)(k0 % tile_k) / Shape::unit_k * words;
  const uint8_t *tile = a.section[LPG_SECTION_CODES] + lpg_tile_offset(Bits, a.k_tiles, row_tile, k0 / tile_k);
  uint32_t word[words];
#pragma unroll
  for (int i = 0; i < words; i++) {
    word[i] = *(const uint32_t *)(tile + lpg_word_offset(lane, 2 * (first_word + i) + row_half));
  }
  group_terms terms = {};
#pragma unroll
  for (int pair = 0; pair < lpg_unit_codes(Bits) / 2; pair++) {
    const int64_t step_k = k0 + pair / 2 * LPG_STEP_K;
    if (pair == 0 ||
        (pair % 2 == 0 && (uint32_t)step_k % (uint32_t)a.group.k == 0)) { /* groups are multiples of 16 columns */
      terms = terms_at(a, row, step_k);
    }
    const uint32_t codes = lpg_unit_pair(Bits, word, 1, pair);
#pragma unroll
    for (int odd = 0; odd < 2; odd++) {
      const int k = pair / 2 * LPG_STEP_K + pair % 2 * 8 + 2 * (lane % 4) + odd;
      const float weight = weight_of(a, terms, values[codes >> 16 * odd & 0xffffu]);
      w[(k_in_chunk + k) * Shape::w_stride + row_in_block] = k0 + k < a.k ? weight : 0.0f;
    }
  }
}

template <int Bits, class Shape>
__device__ void decode_chunk(const generic_args &a, const float *values, int64_t first_row_tile, int64_t k0, float *w) {
  constexpr int row_tiles = Shape::rows / LPG_TILE_ROWS, units = Shape::chunk_k / Shape::unit_k;
  for (int i = threadIdx.x; i < 64 * row_tiles * units; i += Shape::threads) {
    const int lane = i % 32, row_half = i / 32 % 2, tile = i / 64 % row_tiles, unit = i / (64 * row_tiles);
    const int k_in_chunk = unit * Shape::unit_k;
    if (first_row_tile + tile >= a.row_tiles || k0 + k_in_chunk >= a.k_tiles * lpg_tile_k(Bits)) {
      for (int k = 2 * (lane % 4); k < Shape::unit_k; k += k % 2 ? 7 : 1) { /* the lane's columns */
        w[(k_in_chunk + k) * Shape::w_stride + tile * LPG_TILE_ROWS + lane / 4 + 8 * row_half] = 0.0f;
      }
      continue;
    }
    decode_unit<Bits, Shape>(a, values, first_row_tile + tile, k0 + k_in_chunk, lane, row_half,
                             tile * LPG_TILE_ROWS + lane / 4 + 8 * row_half, k_in_chunk, w);
  }
}

template <class Shape>
__device__ void load_x(const generic_args &a, int64_t m0, int64_t k0, float *x) {
  for (int i = threadIdx.x; i < Shape::columns * Shape::chunk_k; i += Shape::threads) {
    const int k = i % Shape::chunk_k, m = i / Shape::chunk_k;
    const bool inside = m0 + m < a.m && k0 + k < a.k;
    x[k * Shape::x_stride + m] = inside ? lpg_load(a.x_type, a.x, (m0 + m) * a.ldx + k0 + k) : 0.0f;
  }
}

/* A thread's sums: fp32, or int32 kept in the same registers. */
template <class Shape>
struct generic_sums {
  float total[Shape::tile_w][Shape::tile_x];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < Shape::tile_w; i++) {
#pragma unroll
      for (int j = 0; j < Shape::tile_x; j++) total[i][j] = 0.0f; /* also int32 zero */
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
__device__ void multiply_chunk(const float *w, const float *x, int block_w, int block_x, int slice,
                               float (&sum)[Shape::tile_w][Shape::tile_x]) {
#pragma unroll 4
  for (int k = slice; k < Shape::chunk_k; k += Shape::slices) {
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

/* Adds the slices' sums in a fixed order and stores the block. */
template <class Shape>
__device__ void finish(const generic_args &a, const generic_sums<Shape> &sums, int block_w, int block_x, int slice,
                       int64_t row0, int64_t m0, float *scratch) {
  constexpr int outputs = Shape::rows * Shape::columns;
#pragma unroll
  for (int i = 0; i < Shape::tile_w; i++) {
#pragma unroll
    for (int j = 0; j < Shape::tile_x; j++) {
      const int at = (block_x * Shape::tile_x + j) * Shape::rows + block_w * Shape::tile_w + i;
      scratch[slice * outputs + at] = sums.total[i][j];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < outputs; i += Shape::threads) {
    const int64_t row = row0 + i % Shape::rows, m = m0 + i / Shape::rows;
    if (row >= a.n || m >= a.m) continue;
    float sum = scratch[i];
    for (int s = 1; s < Shape::slices; s++) {
      const float part = scratch[s * outputs + i];
      sum = a.integer ? __int_as_float(__float_as_int(sum) + __float_as_int(part)) : sum + part;
    }
    if (a.integer) {
      store_integer(a.epilogue, m, row, __float_as_int(sum));
    } else {
      store_real(a.epilogue, m, row, sum);
    }
  }
  __syncthreads();
}

template <int Bits, int RowTiles, int Columns>
__global__ void __launch_bounds__(256, RowTiles == 1 ? 4 : 2) generic_kernel(const generic_args a) {
  using shape = generic_shape<Bits, RowTiles, Columns>;
  extern __shared__ float memory[];
  float *values = memory, *w = memory + 256, *x = w + shape::chunk_k * shape::w_stride;
  for (int code = threadIdx.x; code < 1 << Bits; code += shape::threads) {
    values[code] = lpg_code_value(a.type, (uint32_t)code ^ lpg_stored_flip(a.type), a.codebook);
  }
  const int block_w = threadIdx.x % shape::blocks_w, block_x = threadIdx.x / shape::blocks_w % shape::blocks_x;
  const int slice = threadIdx.x / (shape::blocks_w * shape::blocks_x);
  const int64_t row_tile = (int64_t)blockIdx.x * RowTiles;
  const int64_t k_end = reads_product(a.epilogue) ? a.k : 0;
  for (int64_t m0 = (int64_t)blockIdx.y * Columns; m0 < a.m; m0 += (int64_t)gridDim.y * Columns) {
    generic_sums<shape> sums;
    sums.clear();
    for (int64_t k0 = 0; k0 < k_end; k0 += shape::chunk_k) {
      __syncthreads();
      decode_chunk<Bits, shape>(a, values, row_tile, k0, w);
      load_x<shape>(a, m0, k0, x);
      __syncthreads();
      float sum[shape::tile_w][shape::tile_x] = {};
      multiply_chunk<shape>(w, x, block_w, block_x, slice, sum);
      sums.add(sum, a.integer);
    }
    __syncthreads();
    finish<shape>(a, sums, block_w, block_x, slice, row_tile * LPG_TILE_ROWS, m0, w);
  }
}

/* ---- on the host ---- */

inline generic_args make_generic_args(const lpg_call &call) {
  const lpg_plan &plan = *call.problem.plan;
  const lpgemm_weight_desc_t &d = plan.desc;
  generic_args a = {};
  a.type = d.type;
  a.scale_type = d.scale_type;
  a.super_scale_type = d.super_scale_type;
  a.zero_type = d.zero_type;
  a.super_zero_type = d.super_zero_type;
  a.x_type = call.problem.x_type;
  a.zero = d.zero;
  a.zero_constant = d.zero_constant;
  for (int i = 0; i < 16; i++) a.codebook[i] = d.codebook[i];
  a.m = call.problem.m;
  a.n = d.n;
  a.k = d.k;
  a.ldx = call.ldx;
  a.row_tiles = plan.row_tiles;
  a.k_tiles = plan.k_tiles;
  a.group = plan.group;
  a.super = plan.super;
  for (int i = 0; i < LPG_SECTIONS; i++) a.section[i] = call.section[i];
  a.x = call.x;
  a.integer = call.problem.y_type == LPGEMM_I32;
  a.epilogue = make_epilogue(call);
  return a;
}

template <int Bits, int Rows, int Columns>
static lpgemm_status_t run_generic(const lpg_call *call) {
  constexpr int row_tiles = Rows / LPG_TILE_ROWS;
  using shape = generic_shape<Bits, row_tiles, Columns>;
  const generic_args args = make_generic_args(*call);
  const int64_t x_tiles = lpg_ceil_div(args.m, Columns);
  const dim3 grid((unsigned)lpg_ceil_div(args.row_tiles, row_tiles), (unsigned)(x_tiles < 65535 ? x_tiles : 65535));
  return launch((const void *)generic_kernel<Bits, row_tiles, Columns>, grid, shape::threads, shape::shared_bytes,
                call->stream, args);
}

template <int Bits, int Rows, int Columns>
static lpgemm_status_t prepare_generic() {
  constexpr int row_tiles = Rows / LPG_TILE_ROWS;
  return allow_shared((const void *)generic_kernel<Bits, row_tiles, Columns>,
                      generic_shape<Bits, row_tiles, Columns>::shared_bytes);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_GENERIC(symbol, bits, rows, columns)                                                                  \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_generic<bits, rows, columns>(call); } \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_generic<bits, rows, columns>(); }
