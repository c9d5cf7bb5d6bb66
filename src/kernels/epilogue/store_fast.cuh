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

/* What is done to sums beside the rows' factors: nothing, the other scales, or scales, C and a bias. A kernel has two
 * of these forms, since each is code: the last and one of the others. */
enum store_form { stores_plain, stores_scaled, stores_all };

/* A warp's sums of 32 rows of X. */
template <class T>
struct piece_sums {
  static constexpr int x_rows = 32;
  float sum[T::row_tiles][x_rows / 2];

  __device__ void clear() { clear_sums(sum); }

  /* Adds a block of eight rows of X. */
  __device__ void add(int r, int block, float4 v) {
    float *const to = &sum[r][4 * block];
    to[0] += v.x;
    to[1] += v.y;
    to[2] += v.z;
    to[3] += v.w;
  }

  /* Takes those of a work tile from row `first` of X on, which is looked for by halves: see put_own_sums(). */
  template <int First = 0, int Count = T::TileM, class Product>
  __device__ void take(const Product &product, int first) {
    constexpr int half = (Count / x_rows + 1) / 2 * x_rows;
    if constexpr (Count > x_rows) {
      if (first < First + half) {
        take<First, half>(product, first);
      } else {
        take<First + half, Count - half>(product, first);
      }
    } else {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
        for (int i = 0; i < x_rows / 2; i++) sum[r][i] = (float)product.sum[r][First / 2 + i];
      }
    }
  }
};

/* Where a warp's outputs lie on their way to Y, and in Y. Pieces of 8 rows: n is a multiple of 8, so a piece is inside
 * of Y or outside. */
template <class T>
struct piece_places {
  static constexpr int rows = T::row_tiles * LPG_TILE_ROWS, x_rows = piece_sums<T>::x_rows;
  static constexpr int each = output_pieces<rows>::each, step = 32 / each; /* pieces of a row of X; rows of X at once */
  static constexpr int row_bytes = output_pieces<rows>::x_row_bytes;
  uint32_t to;   /* address in the warp's shared memory: as the sums are held, for stmatrix and ldmatrix */
  uint8_t *from; /* the same as the outputs are stored */
  float *biases;
  int x_row, row; /* the lane's first output: its row of X in 32, and its row of W */
  uint16_t *y;    /* where the lane's next output goes */

  template <class Args>
  __device__ piece_places(const Args &a, int first_row, int m, uint8_t *memory) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint8_t *const own = memory + a.plan.sums + warp * lpg_sums_bytes(LPG_PASS_ROWS, rows);
    to = shared_address(own + output_pieces<rows>::place(lane / 8 / each * 8 + lane % 8, lane / 8 % each));
    x_row = lane / each;
    from = own + output_pieces<rows>::place(x_row, lane % each);
    biases = (float *)(own + output_pieces<rows>::biases);
    row = first_row + lane % each * 8;
    y = (uint16_t *)a.epilogue.y + (m + x_row) * a.epilogue.ldy + row;
  }
};

/* Stores 32 rows of X of a warp's rows of W, from row m of X on, none from m_end on. factor: of the lane's rows. */
template <class T, store_form Form, class Args>
__device__ inline void store_piece(const Args &a, piece_places<T> &places, const piece_sums<T> &sums,
                                   const float (&factor)[T::row_tiles][2], int m, int m_end) {
  using lanes = piece_places<T>;
  constexpr bool Adds = Form == stores_all;
  constexpr int each = lanes::each, blocks = lanes::x_rows / 8, at_once = 4 / each; /* a block is 8 rows of X */
  const epilogue_args &e = a.epilogue;
  if (Adds && e.c) { /* C comes the same way as the outputs go, in reverse */
    uint4 piece[each];
#pragma unroll
    for (int i = 0; i < each; i++) {
      const int64_t x_row = min(m + places.x_row + i * lanes::step, m_end - 1);
      piece[i] = *(const uint4 *)((const uint16_t *)e.c + x_row * e.ldc + min(places.row, a.n - 8));
    }
#pragma unroll
    for (int i = 0; i < each; i++) *(uint4 *)(places.from + i * lanes::step * lanes::row_bytes) = piece[i];
    __syncwarp();
  }
  float scale[blocks][2];
  if (Form != stores_plain) read_x_scales(e, m, m_end, scale);
#pragma unroll
  for (int block = 0; block < blocks; block += at_once) {
    float2 v[4]; /* each for two rows of X */
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int j = block + i / each, r = i % each / 2, half = i % 2;
      const float *const sum = &sums.sum[r][j * 4 + half * 2];
      v[i] = {sum[0] * factor[r][half], sum[1] * factor[r][half]};
      if (Form != stores_plain) v[i] = {scaled(e, v[i].x, scale[j][0]), scaled(e, v[i].y, scale[j][1])};
    }
    const uint32_t to = places.to + block * 8 * lanes::row_bytes;
    if (Adds) {
      uint32_t c[4] = {no_pair, no_pair, no_pair, no_pair};
      if (e.c) load_transposed(to, c);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float bias = places.biases[threadIdx.x % 32 / 4 + i % each * 8];
        add_two(e, v[i], c[i], bias, bias);
      }
    }
    store_transposed(to, round_two(e, v[0]), round_two(e, v[1]), round_two(e, v[2]), round_two(e, v[3]));
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < each; i++, places.y += lanes::step * e.ldy) {
    if (places.row >= a.n || m + places.x_row + i * lanes::step >= m_end) continue;
    *(uint4 *)places.y = *(const uint4 *)(places.from + i * lanes::step * lanes::row_bytes);
  }
  __syncwarp();
}

/* Whether the rows' factors are all that sums are multiplied by, and nothing is added: mostly it is so. */
__device__ inline bool is_plain(const epilogue_args &e) {
  return e.only_scales && e.alpha == 1.0f && e.global_scale == 1.0f && !e.x_scale;
}

/* The factors of a lane's rows, of those of all rows of the work tile. */
template <class T>
struct lane_factors {
  float factor[T::row_tiles][2];

  __device__ lane_factors(const float *factors, int first_row) {
#pragma unroll
    for (int i = 0; i < 2 * T::row_tiles; i++) factor[i / 2][i % 2] = factors[first_row + threadIdx.x % 32 / 4 + 8 * i];
  }
};

/* A warp's first row of W in its work tile. */
template <class T>
__device__ inline int warp_row() {
  return threadIdx.x / 32 % T::team_warps * piece_places<T>::rows;
}

/* Stores the rows of X of a work tile from `at` on: each warp its own rows of W, 32 rows of X at a time, whose sums
 * fill(sums, first) brings, `first` counted from there. factors: of all rows of the work tile. */
template <class T, store_form Form, class Args, class Fill>
__device__ inline void store_pieces(const Args &a, const tile_place &at, const float *factors, uint8_t *memory,
                                    const Fill &fill) {
  const int first_row = warp_row<T>(), lane = threadIdx.x % 32;
  piece_places<T> places(a, at.n + first_row, at.m, memory);
  const lane_factors<T> own(factors, first_row);
  if (Form == stores_all) {
    if (lane < piece_places<T>::rows)
      places.biases[lane] = bias_of(a.epilogue, at.bias + min(at.n + first_row + lane, a.n - 1));
    __syncwarp();
  }
#pragma unroll 1
  for (int m = at.m; m < at.m_end; m += piece_places<T>::x_rows) {
    piece_sums<T> sums;
    fill(sums, m - at.m);
    store_piece<T, Form>(a, places, sums, own.factor, m, at.m_end);
  }
}

/* The same for plain sums of a work tile whose K is not split. Not a loop: this is what large work tiles wait for. */
template <class T, class Args, class Product>
__device__ inline void store_plain(const Args &a, const tile_place &at, const Product &product, const float *factors,
                                   uint8_t *memory) {
  const int first_row = warp_row<T>();
  piece_places<T> places(a, at.n + first_row, at.m, memory);
  const lane_factors<T> own(factors, first_row);
#pragma unroll
  for (int first = 0; first < T::TileM; first += piece_places<T>::x_rows) {
    if (at.m + first >= at.m_end) break;
    piece_sums<T> sums;
    sums.take(product, first);
    store_piece<T, stores_plain>(a, places, sums, own.factor, at.m + first, at.m_end);
  }
}

/* Whether a matrix of n columns is the common case. */
__host__ __device__ inline bool stores_pieces(const epilogue_args &e, int n) {
  return e.only_sums && e.vector == 8 && n % 8 == 0;
}

/* Stores a work tile, whose K is not split; false, with nothing done, if it is not the common case. factors: of all
 * rows of the work tile. */
template <class T, class Args, class Work, class Product>
__device__ inline bool store_scaled(const Args &a, const Work &w, int tile, const Product &product,
                                    const float *factors, uint8_t *memory) {
  if (!stores_pieces(a.epilogue, a.n)) return false;
  tile_place at = place_of<T>(a, w, tile);
  at.m_end = min(at.m_end, at.m + T::TileM);
  const auto take = [&](piece_sums<T> &sums, int first) { sums.take(product, first); };
  if (a.epilogue.only_scales) {
    store_pieces<T, stores_scaled>(a, at, factors, memory, take);
  } else {
    store_pieces<T, stores_all>(a, at, factors, memory, take);
  }
  return true;
}

}  // namespace
}  // namespace lpg
