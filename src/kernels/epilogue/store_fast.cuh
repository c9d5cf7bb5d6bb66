/* From the sums of a work tile to the outputs in the common case: 16-bit Y with scales, C and a bias, in whole vectors
 * of 16 bytes. The arithmetic is that of store_tile() in store.cuh, which stores all others. */
#pragma once

#include "../prim/async.cuh"
#include "../prim/named_barriers.h"
#include "../prim/wgmma.cuh"
#include "store.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Outputs of 32 rows of X in shared memory, on their way to Y: 64 rows of W, so that a row of X is a line of 128 bytes,
 * in pieces of 8 rows of W. The pieces are permuted so that eight that are written or read at once lie in different
 * banks; it is what TMA's swizzle does, too. */
struct output_lines {
  static constexpr int rows = 64, x_rows = 32, line_bytes = rows * 2, bytes = x_rows * line_bytes, pieces = rows / 8;
  __device__ static int place(int x_row, int piece) { return x_row * line_bytes + (piece ^ x_row % pieces) * 16; }
};

/* The warps that have such lines together. */
template <class T>
struct output_group : output_lines {
  static constexpr int warp_rows = T::row_tiles * LPG_TILE_ROWS, warps = rows / warp_rows, threads = 32 * warps;
  static constexpr int biases = bytes; /* behind the outputs: the fp32 bias of every row of W */
  static constexpr int room = warps * lpg_sums_bytes(LPG_PASS_ROWS, warp_rows);
  static_assert(T::team_warps % warps == 0, "a group has one work tile");
  static_assert(biases + rows * 4 <= room, "the plan has room for sums");

  __device__ static int number() { return threadIdx.x / threads; }
  __device__ static void meet() { threads_meet(outputs_are_there + number(), threads); }
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

  /* Adds a block of eight rows of X. Integers are held as bits, until they are converted. */
  __device__ void add(int r, int block, float4 v) {
    const float four[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float &to = sum[r][4 * block + i];
      to = T::integer_sums ? __int_as_float(__float_as_int(to) + __float_as_int(four[i])) : to + four[i];
    }
  }

  __device__ void convert_integers() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < x_rows / 2; i++) sum[r][i] = (float)__float_as_int(sum[r][i]);
    }
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

/* Where outputs lie on their way to Y, and in Y. Pieces of 8 rows: n is a multiple of 8, so a piece is inside of Y or
 * outside. */
template <class T>
struct piece_places {
  using group = output_group<T>;
  static constexpr int x_rows = group::x_rows, own_pieces = 2 * T::row_tiles; /* own: of a warp */
  static constexpr int step = group::threads / group::pieces,
                       each = x_rows / step; /* rows of X that are stored at once */
  uint32_t to;    /* address in the group's shared memory: as a warp holds its sums, for stmatrix and ldmatrix */
  uint8_t *from;  /* the same as the outputs are stored */
  float *biases;  /* of the warp's rows */
  int x_row, row; /* the thread's first output: its row of X in 32, and its row of W */
  uint16_t *y;    /* where the thread's next output goes */

  /* first_row: of the group; memory: its own. */
  template <class Args>
  __device__ piece_places(const Args &a, int first_row, int m, uint8_t *own) {
    const int thread = threadIdx.x % group::threads, lane = thread % 32, first_piece = thread / 32 * own_pieces;
    to = shared_address(own + group::place(lane / 8 / own_pieces * 8 + lane % 8, first_piece + lane / 8 % own_pieces));
    x_row = thread / group::pieces;
    from = own + group::place(x_row, thread % group::pieces);
    biases = (float *)(own + group::biases) + first_piece * 8;
    row = first_row + thread % group::pieces * 8;
    y = (uint16_t *)a.epilogue.y + (m + x_row) * a.epilogue.ldy + row;
  }
};

/* Puts the outputs of 32 rows of X into a group's shared memory, from row m of X on. factor: of the lane's rows. */
template <class T, store_form Form, class Args>
__device__ inline void put_piece(const Args &a, piece_places<T> &places, const piece_sums<T> &sums,
                                 const float (&factor)[T::row_tiles][2], int m, int m_end) {
  using lanes = piece_places<T>;
  constexpr bool Adds = Form == stores_all;
  constexpr int each = lanes::each, blocks = lanes::x_rows / 8, line_bytes = lanes::group::line_bytes;
  constexpr int own = lanes::own_pieces, at_once = 4 / own; /* a block is 8 rows of X */
  const epilogue_args &e = a.epilogue;
  if (Adds && e.c) { /* C comes the same way as the outputs go, in reverse */
    uint4 piece[each];
#pragma unroll
    for (int i = 0; i < each; i++) {
      const int64_t x_row = min(m + places.x_row + i * lanes::step, m_end - 1);
      piece[i] = *(const uint4 *)((const uint16_t *)e.c + x_row * e.ldc + min(places.row, a.n - 8));
    }
#pragma unroll
    for (int i = 0; i < each; i++) *(uint4 *)(places.from + i * lanes::step * line_bytes) = piece[i];
    lanes::group::meet();
  }
  float scale[blocks][2];
  if (Form != stores_plain) read_x_scales(e, m, m_end, scale);
#pragma unroll
  for (int block = 0; block < blocks; block += at_once) {
    float2 v[4]; /* each for two rows of X */
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int j = block + i / own, r = i % own / 2, half = i % 2;
      const float *const sum = &sums.sum[r][j * 4 + half * 2];
      v[i] = {sum[0] * factor[r][half], sum[1] * factor[r][half]};
      if (Form != stores_plain) v[i] = {scaled(e, v[i].x, scale[j][0]), scaled(e, v[i].y, scale[j][1])};
    }
    const uint32_t to = places.to + block * 8 * line_bytes;
    if (Adds) {
      uint32_t c[4] = {no_pair, no_pair, no_pair, no_pair};
      if (e.c) load_transposed(to, c);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float bias = places.biases[threadIdx.x % 32 / 4 + i % own * 8];
        add_two(e, v[i], c[i], bias, bias);
      }
    }
    store_transposed(to, round_two(e, v[0]), round_two(e, v[1]), round_two(e, v[2]), round_two(e, v[3]));
  }
}

/* Stores what put_piece() has put there; none from row m_end of X on. */
template <class T, class Args>
__device__ inline void send_piece(const Args &a, piece_places<T> &places, int m, int m_end) {
  using lanes = piece_places<T>;
  lanes::group::meet();
#pragma unroll
  for (int i = 0; i < lanes::each; i++, places.y += lanes::step * a.epilogue.ldy) {
    if (places.row >= a.n || m + places.x_row + i * lanes::step >= m_end) continue;
    *(uint4 *)places.y = *(const uint4 *)(places.from + i * lanes::step * lanes::group::line_bytes);
  }
  lanes::group::meet();
}

/* Whether the rows' factors are all that sums are multiplied by, and nothing is added: mostly it is so. */
__host__ __device__ inline bool is_plain(const epilogue_args &e) {
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

/* The first row of W in its work tile of a warp, and of its group. */
template <class T>
__device__ inline int warp_row() {
  return threadIdx.x / 32 % T::team_warps * output_group<T>::warp_rows;
}
template <class T>
__device__ inline int group_row() {
  return output_group<T>::number() * output_group<T>::rows % T::tile_n;
}

/* Stores the rows of X of a work tile from `at` on: each group of warps its own rows of W, 32 rows of X at a time,
 * whose sums fill(sums, first) brings, `first` counted from there. factors: of all rows of the work tile. */
template <class T, store_form Form, class Args, class Fill>
__device__ inline void store_pieces(const Args &a, const tile_place &at, const float *factors, uint8_t *memory,
                                    const Fill &fill) {
  using group = output_group<T>;
  const int lane = threadIdx.x % 32;
  piece_places<T> places(a, at.n + group_row<T>(), at.m, memory + a.plan.sums + group::number() * group::room);
  const lane_factors<T> own(factors, warp_row<T>());
  if (Form == stores_all) {
    if (lane < group::warp_rows)
      places.biases[lane] = bias_of(a.epilogue, at.bias + min(at.n + warp_row<T>() + lane, a.n - 1));
    __syncwarp();
  }
#pragma unroll 1
  for (int m = at.m; m < at.m_end; m += group::x_rows) {
    piece_sums<T> sums;
    fill(sums, m - at.m);
    put_piece<T, Form>(a, places, sums, own.factor, m, at.m_end);
    send_piece(a, places, m, at.m_end);
  }
}

/* Lets TMA store a work tile that the group has put into its shared memory, while the group goes on. */
template <class T, class Args>
__device__ inline void store_boxes(const Args &a, const tile_place &at, uint8_t *own) {
  using group = output_group<T>;
  fence_for_tensor_cores();
  group::meet();
  if (threadIdx.x % group::threads < 32 && is_elected()) {
    uint32_t from = shared_address(own);
    for (int m = at.m; m < at.m_end; m += group::x_rows, from += group::bytes) {
      store_box(&a.y_map, at.n + group_row<T>(), m, from);
    }
    commit_stores();
  }
  __syncwarp();
}

/* As store_pieces(), for plain sums of a work tile whose K is not split; by TMA, if the plan has room for all outputs.
 * Not a loop: this is what large work tiles wait for. */
template <class T, class Args, class Product>
__device__ inline void store_plain(const Args &a, const tile_place &at, const Product &product, const float *factors,
                                   uint8_t *memory) {
  using group = output_group<T>;
  const bool boxes = T::streams && a.plan.boxes;
  uint8_t *const room =
      memory + a.plan.sums + group::number() * (boxes ? a.plan.x_rows * group::line_bytes : group::room);
  piece_places<T> places(a, at.n + group_row<T>(), at.m, room);
  const lane_factors<T> own(factors, warp_row<T>());
  if (boxes) { /* the work tile before has left */
    wait_stores_read();
    group::meet();
  }
#pragma unroll
  for (int first = 0; first < T::TileM; first += group::x_rows) {
    if (at.m + first >= at.m_end) break;
    piece_sums<T> sums;
    sums.take(product, first);
    put_piece<T, stores_plain>(a, places, sums, own.factor, at.m + first, at.m_end);
    if (boxes) {
      places.to += group::bytes;
    } else {
      send_piece(a, places, at.m + first, at.m_end);
    }
  }
  if (boxes) store_boxes<T>(a, at, room);
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
