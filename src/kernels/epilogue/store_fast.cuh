/* From the sums of a work tile to the outputs in the common case: 16-bit Y with scales, C and a bias, in whole vectors
 * of 16 bytes. The arithmetic is that of store_tile() in store.cuh, which stores all others. */
#pragma once

#include "../prim/async.cuh"
#include "../prim/wgmma.cuh"
#include "store.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A warp's outputs of 32 rows of X in its own shared memory: one row of X after the other, in pieces of 8 rows of W.
 * The pieces are permuted so that eight that are written or read at once lie in different banks. */
template <int Rows>
struct output_pieces {
  static constexpr int x_rows = 32, each = Rows / 8, x_row_bytes = Rows * 2;
  static constexpr int biases = x_rows * x_row_bytes; /* behind the outputs: the fp32 bias of every row of W */
  static_assert(biases + Rows * 4 <= lpg_sums_bytes(LPG_PASS_ROWS, Rows), "the plan has room for sums");

  __device__ static int place(int x_row, int piece) {
    return x_row * x_row_bytes + (piece ^ x_row / (8 / each) % each) * 16;
  }
};

/* Scales of X of rows x_row + 8 j + 2 t and the next one. Those from x_rows on repeat the last. */
template <int Count>
__device__ inline void read_x_scales(const epilogue_args &e, int x_row, int x_rows, float (&scale)[Count][2]) {
#pragma unroll
  for (int i = 0; i < 2 * Count; i++) scale[i / 2][i % 2] = 1.0f;
  if (!e.x_scale) return;
#pragma unroll
  for (int i = 0; i < 2 * Count; i++) {
    scale[i / 2][i % 2] = x_scale_of(e, min(x_row + i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2, x_rows - 1));
  }
}

/* What is done to sums beside the rows' factors: nothing, the other scales, or scales, C and a bias. */
enum store_form { stores_plain, stores_scaled, stores_all };

/* Stores XRows rows of X of a work tile, from `at` on: each warp its own rows of W, 32 rows of X a pass. n is a
 * multiple of 8, so a piece of 8 rows is inside of Y or outside. */
template <class T, int XRows, store_form Form, class Args, class Product>
__device__ inline void store_pieces_as(const Args &a, const tile_place &at, const Product &product,
                                       const float *factors, uint8_t *memory) {
  constexpr bool Adds = Form == stores_all;
  constexpr int rows = T::row_tiles * LPG_TILE_ROWS, x_rows = output_pieces<rows>::x_rows;
  constexpr int each = output_pieces<rows>::each, step = 32 / each; /* pieces of a row of X; rows of X at once */
  constexpr int blocks = x_rows / 8, at_once = 4 / each;            /* a block is 8 rows of X */
  const epilogue_args &e = a.epilogue;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % T::team_warps; /* warp: in its team */
  const int first_row = at.n, first_m = at.m, m_end = at.m_end;
  uint8_t *const own = memory + a.plan.sums + threadIdx.x / 32 * lpg_sums_bytes(LPG_PASS_ROWS, rows);
  const uint32_t to = shared_address(own + output_pieces<rows>::place(lane / 8 / each * 8 + lane % 8, lane / 8 % each));
  const int own_x_row = lane / each;
  uint8_t *const from = own + output_pieces<rows>::place(own_x_row, lane % each);
  const int own_row = first_row + warp * rows + lane % each * 8;
  const bool inside = own_row < a.n;
  uint16_t *y = (uint16_t *)e.y + (first_m + own_x_row) * e.ldy + own_row;
  float *const biases = (float *)(own + output_pieces<rows>::biases);
  float factor[T::row_tiles][2], scale[blocks][2];
#pragma unroll
  for (int i = 0; i < 2 * T::row_tiles; i++) factor[i / 2][i % 2] = factors[warp * rows + lane / 4 + 8 * i];
  if (Adds) {
    if (lane < rows) biases[lane] = bias_of(e, at.bias + min(first_row + warp * rows + lane, a.n - 1));
    __syncwarp();
  }
#pragma unroll
  for (int first = 0; first < XRows; first += x_rows) {
    if (first_m + first >= m_end) break;
    if (Adds && e.c) { /* C comes the same way as the outputs go, in reverse */
      uint4 piece[each];
#pragma unroll
      for (int i = 0; i < each; i++) {
        const int64_t x_row = min(first_m + first + own_x_row + i * step, m_end - 1);
        piece[i] = *(const uint4 *)((const uint16_t *)e.c + x_row * e.ldc + min(own_row, a.n - 8));
      }
#pragma unroll
      for (int i = 0; i < each; i++) *(uint4 *)(from + i * step * output_pieces<rows>::x_row_bytes) = piece[i];
      __syncwarp();
    }
    if (Form != stores_plain) read_x_scales(e, first_m + first, m_end, scale);
#pragma unroll
    for (int block = 0; block < blocks; block += at_once) {
      float2 v[4]; /* each for two rows of X */
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int j = block + i / each, r = i % each / 2, half = i % 2;
        const auto *const sum = &product.sum[r][(first / 8 + j) * 4 + half * 2];
        v[i] = {(float)sum[0] * factor[r][half], (float)sum[1] * factor[r][half]};
        if (Form != stores_plain) v[i] = {scaled(e, v[i].x, scale[j][0]), scaled(e, v[i].y, scale[j][1])};
      }
      if (Adds) {
        uint32_t c[4] = {no_pair, no_pair, no_pair, no_pair};
        if (e.c) load_transposed(to + block * 8 * output_pieces<rows>::x_row_bytes, c);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const float bias = biases[lane / 4 + i % each * 8];
          add_two(e, v[i], c[i], bias, bias);
        }
      }
      store_transposed(to + block * 8 * output_pieces<rows>::x_row_bytes, round_two(e, v[0]), round_two(e, v[1]),
                       round_two(e, v[2]), round_two(e, v[3]));
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < each; i++, y += step * e.ldy) {
      if (!inside || first_m + first + own_x_row + i * step >= m_end) continue;
      *(uint4 *)y = *(const uint4 *)(from + i * step * output_pieces<rows>::x_row_bytes);
    }
    __syncwarp();
  }
}

/* Plain: mostly there are no other scales. Code that runs once a work tile is slow to come, so there are two forms of
 * it, not three. */
template <class T, int XRows, bool Plain, class Args, class Product>
__device__ inline void store_pieces(const Args &a, const tile_place &at, const Product &product, const float *factors,
                                    uint8_t *memory) {
  const epilogue_args &e = a.epilogue;
  if (e.only_scales && (!Plain || (e.alpha == 1.0f && e.global_scale == 1.0f && !e.x_scale))) {
    store_pieces_as<T, XRows, Plain ? stores_plain : stores_scaled>(a, at, product, factors, memory);
  } else {
    store_pieces_as<T, XRows, stores_all>(a, at, product, factors, memory);
  }
}

/* Whether a matrix of n columns is the common case. */
__host__ __device__ inline bool stores_pieces(const epilogue_args &e, int n) {
  return e.only_sums && e.vector == 8 && n % 8 == 0;
}

/* Stores a work tile; false, with nothing done, if it is not the common case. factors: of all rows of the work tile. */
template <class T, bool Plain = false, class Args, class Work, class Product>
__device__ inline bool store_scaled(const Args &a, const Work &w, int tile, const Product &product,
                                    const float *factors, uint8_t *memory) {
  if (!stores_pieces(a.epilogue, a.n)) return false;
  store_pieces<T, T::TileM, Plain>(a, place_of<T>(a, w, tile), product, factors, memory);
  return true;
}

}  // namespace
}  // namespace lpg
