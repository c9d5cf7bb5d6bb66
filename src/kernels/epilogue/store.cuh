/* From the sums of a work tile, which warps hold in registers, through shared memory to the outputs: all cases but the
 * common one, which is store_fast.cuh's. This is much code, so each piece stands in a kernel once, for split-K and
 * without, and each type is a branch. */
#pragma once

#include "../operand/x_type.cuh"
#include "../plan/scheduler.cuh"
#include "outputs.cuh"
#include "split_k.cuh"
#include "store_pairs.cuh"
#include "sums.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Sets the sums of row tiles to zero. */
template <class Sum, int RowTiles, int Count>
__device__ inline void clear_sums(Sum (&sum)[RowTiles][Count]) {
#pragma unroll
  for (int r = 0; r < RowTiles; r++) {
#pragma unroll
    for (int i = 0; i < Count; i++) sum[r][i] = 0;
  }
}

/* Stands for a missing C: adding -0 changes no value. */
constexpr uint32_t no_pair = 0x80008000u;

__device__ inline float bias_of(const epilogue_args &e, int64_t n) {
  return e.bias ? load_real(e.bias_type, e.bias, n) : -0.0f;
}

__device__ inline float scaled(const epilogue_args &e, float sum, float x_scale) {
  return __fmul_rn(__fmul_rn(e.alpha, sum * e.global_scale), x_scale);
}

__device__ inline uint32_t round_two(const epilogue_args &e, float2 v) {
  return e.y_type == LPGEMM_F16 ? f16_x::round_two(v.x, v.y) : bf16_x::round_two(v.x, v.y);
}

/* Adds to each value its element of C and its bias. */
__device__ inline void add_two(const epilogue_args &e, float2 &v, uint32_t c, float bias_x, float bias_y) {
  const auto widen = [&](uint16_t x) { return e.y_type == LPGEMM_F16 ? f16_x::widen(x) : bf16_x::widen(x); };
  v.x = fmaf(e.beta, widen((uint16_t)c), v.x) + bias_x;
  v.y = fmaf(e.beta, widen((uint16_t)(c >> 16)), v.y) + bias_y;
}

__device__ inline uint32_t scaled_two(const epilogue_args &e, float a, float b, float x_scale) {
  return round_two(e, make_float2(scaled(e, a, x_scale), scaled(e, b, x_scale)));
}

/* Stores four neighbouring 16-bit outputs that are scaled only. */
__device__ inline void store_four(const epilogue_args &e, uint16_t *y, float4 v, float x_scale) {
  *(uint2 *)y = make_uint2(scaled_two(e, v.x, v.y, x_scale), scaled_two(e, v.z, v.w, x_scale));
}

/* ---- from shared memory to Y ---- */

/* A thread's share of the outputs of Rows rows of W, of Threads threads: its first row of W and of X, and how many rows
 * of X lie between two of its outputs. All threads together take all_rows rows of X at once. */
struct output_share {
  int row, x_row, step, all_rows;
};

template <int Rows, int Threads>
__device__ inline output_share share_of(int thread, bool wide) {
  static_assert(Threads % Rows == 0, "a thread has rows of W of its own");
  constexpr int step = Threads / Rows, all = output_block<1>::size * step;
  if (wide) return {thread % (Rows / 4) * 4, thread / (Rows / 4), 4 * step, all};
  return {thread % Rows, thread / Rows, step, all};
}

/* The same of pairs: a thread has four outputs of a row of X, whose gates are four rows of W from `row` on and whose
 * ups lie eight rows behind. */
template <int Rows, int Threads>
__device__ inline output_share share_of_pairs(int thread) {
  constexpr int units = Rows / 8, step = Threads / units;
  const int unit = thread % units;
  return {unit / 2 * LPG_TILE_ROWS + unit % 2 * 4, thread / units, step, step};
}

/* Whether outputs of Rows rows of W, from row n on, are stored in vectors of four. */
template <int Rows, class Args>
__device__ inline bool stores_wide(const Args &a, int n) {
  return a.epilogue.vector >= 4 && (n + Rows <= a.n || a.n % 4 == 0);
}

/* The outputs that threads store together, through shared memory: of rows of W from place.n on, and of some rows of X
 * at a time. */
template <class Sums>
struct output_pass {
  Sums sums;
  tile_place place;
  const float *factors; /* of the rows of W */
  int x_rows;           /* at a time, the most */
  bool wide;
  output_share share; /* of this thread */

  /* Threads threads have Rows rows of W; this is number `thread`. Pairs: rows of W may come in pairs. */
  template <int Rows, int Threads, bool Pairs, class Args>
  __device__ void deal_out(const Args &a, int thread) {
    wide = !Pairs && stores_wide<Rows>(a, place.n);
    share = Pairs && a.epilogue.paired ? share_of_pairs<Rows, Threads>(thread) : share_of<Rows, Threads>(thread, wide);
  }
};

/* Those of a warp's Rows rows of W, whose sums are in its own shared memory. */
template <int Rows, class Args>
__device__ inline output_pass<own_sums> own_pass(const Args &a, const float *sums, const float *factors,
                                                 const tile_place &place) {
  output_pass<own_sums> pass = {{sums, lpg_sums_stride(Rows)}, place, factors, LPG_PASS_ROWS, false, {}};
  pass.deal_out<Rows, 32, false>(a, threadIdx.x % 32);
  return pass;
}

/* Stores a thread's share of the outputs of rows of X from row m on, whose sums are there. */
template <class T, int Columns, class Pass, class Args>
__device__ inline void store_columns(const Args &a, const Pass &pass, int m) {
  const epilogue_args &e = a.epilogue;
  const output_share &share = pass.share;
  const int n = pass.place.n + share.row, x_rows = n < a.n ? min(pass.x_rows, pass.place.m_end - m) : 0;
  const float alpha = alpha_of(e), beta = beta_of(e);
#pragma unroll 1
  for (int x_row = share.x_row; x_row < x_rows; x_row += share.all_rows) {
    output_block<Columns> block = {m + x_row, n, share.step, x_rows - x_row, {}};
    block.take(pass.sums, x_row, share.row);
    if constexpr (T::integer_sums) {
      if (e.y_type == LPGEMM_I32) {
        block.store_integers(e, alpha, beta);
        continue;
      }
      block.convert_integers();
    }
    block.scale(e, alpha, pass.factors + share.row);
    if (e.c && beta != 0.0f) block.add_c(e, beta);
    if (e.bias) block.add_bias(e, pass.place.bias + n);
    block.activate(e.activation);
    block.store(e);
  }
}

template <class T, class Pass, class Args>
__device__ inline void store_pass(const Args &a, const Pass &pass, int m) {
  if (pass.wide) {
    store_columns<T, 4>(a, pass, m);
  } else {
    store_columns<T, 1>(a, pass, m);
  }
}

/* The same for work tiles whose rows of W may come in pairs. */
template <class T, class Work, class Pass, class Args>
__device__ inline void store_rows(const Args &a, const Pass &pass, int m) {
  if constexpr (Work::is_placed) { /* others that are not the common case are rare in stacks */
    if (a.epilogue.paired) return store_pairs(a, pass, m);
    store_columns<T, 1>(a, pass, m);
  } else {
    store_pass<T>(a, pass, m);
  }
}

/* ---- from registers to shared memory ---- */

/* Integer sums go as bits. */
__device__ inline float as_float(float sum) { return sum; }
__device__ inline float as_float(int sum) { return __int_as_float(sum); }

/* Writes a warp's sums of 16 rows of X, from `first` on, to `own`. Registers cannot be indexed: `first` is First
 * plus a multiple of 16, below First + Count, and is looked for by halves. Else all sums would be written, each under a
 * condition. */
template <class T, int First, int Count, class Product>
__device__ inline void put_own_sums(const Product &product, float *own, int stride, int first) {
  constexpr int x_rows = LPG_PASS_ROWS, half = (Count / x_rows + 1) / 2 * x_rows;
  if constexpr (Count > x_rows) {
    if (first < First + half) {
      put_own_sums<T, First, half>(product, own, stride, first);
    } else {
      put_own_sums<T, First + half, Count - half>(product, own, stride, first);
    }
  } else {
#pragma unroll
    for (int j = 0; j < x_rows / 8; j++) {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          own[(8 * j + i % 2) * stride + r * LPG_TILE_ROWS + i / 2 * 8] =
              as_float(product.sum[r][(First / 8 + j) * 4 + i]);
        }
      }
    }
  }
}

/* The same to `sums`, for the first of the warp's rows of W. */
template <class T, class Product>
__device__ inline void put_sums(const Product &product, float *sums, int stride, int first) {
  const int lane = threadIdx.x % 32;
  put_own_sums<T, 0, T::TileM>(product, sums + 2 * (lane % 4) * stride + lane / 4, stride, first);
}

/* ---- work tiles ---- */

/* Sums as a kernel reads them that may split K, or never does. */
template <class T, bool Splits>
using sums_of_parts = std::conditional_t<Splits, cluster_sums<T::integer_sums>, own_sums>;

/* K is not split: each warp stores its own rows of W, 16 rows of X at a time, through its own shared memory.
 * Returns where its sums go, as set_split_pass() does. */
template <class T, class Work, class Pass, class Args>
__device__ inline float *set_own_pass(const Args &a, const tile_place &tile, const float *factors, uint8_t *memory,
                                      Pass &pass) {
  constexpr int rows = T::row_tiles * LPG_TILE_ROWS;
  const int warp = threadIdx.x / 32;
  float *const own = (float *)(memory + a.plan.sums + warp * lpg_sums_bytes(LPG_PASS_ROWS, rows));
  pass.place = {tile.m, tile.m_end, tile.n + warp * rows, tile.bias};
  pass.factors = factors + warp * rows;
  pass.x_rows = LPG_PASS_ROWS;
  pass.template deal_out<rows, 32, Work::is_placed>(a, threadIdx.x % 32);
  pass.sums = {own, lpg_sums_stride(rows)};
  return own;
}

/* K is split: each CTA stores some of the work tile's rows of X, at once. parts: of a CTA. */
template <class T, class Work, class Args>
__device__ inline float *set_split_pass(const Args &a, const Work &w, const tile_place &tile, int x_rows, int parts,
                                        const float *factors, uint8_t *memory,
                                        output_pass<cluster_sums<T::integer_sums>> &pass) {
  constexpr int stride = lpg_sums_stride(T::tile_n), part_floats = T::TileM * stride;
  const int warp = threadIdx.x / 32, team = warp / T::team_warps;
  const int each = (int)((unsigned)(x_rows + a.plan.split_k - 1) / (unsigned)a.plan.split_k), from = w.rank * each;
  float *const sums = (float *)(memory + a.plan.sums);
  pass.place = {tile.m + from, tile.m_end, tile.n, tile.bias};
  pass.factors = factors;
  pass.x_rows = min(each, x_rows - from);
  pass.template deal_out<T::tile_n, 32 * T::warps, Work::is_placed>(a, threadIdx.x);
  pass.sums = {sums + from * stride, stride, parts, part_floats * 4, a.plan.split_k, w.first_rank};
  return sums + team * part_floats + warp % T::team_warps * (T::row_tiles * LPG_TILE_ROWS);
}

/* Stores a work tile. parts: of K, whose sums each CTA has, MostParts at most; 0 where K is not split. Of two parts
 * that one team has, `before` has the sums of the first. factors: of all rows of the work tile. */
template <class T, int MostParts, class Args, class Work, class Product>
__device__ inline void store_tile(const Args &a, const Work &w, int tile, const Product &product, const Product &before,
                                  int parts, const float *factors, uint8_t *memory) {
  constexpr bool Splits = MostParts > 0;
  const tile_place whole = place_of<T>(a, w, tile);
  const int x_rows = max(min(T::TileM, whole.m_end - whole.m), 0);
  const bool split = Splits && parts > 0;
  output_pass<sums_of_parts<T, Splits>> pass;
  float *own;
  int stride = lpg_sums_stride(T::row_tiles * LPG_TILE_ROWS), at_once = LPG_PASS_ROWS;
  if (!split) {
    own = set_own_pass<T, Work>(a, whole, factors, memory, pass);
  } else if constexpr (Splits) {
    own = set_split_pass<T>(a, w, whole, x_rows, parts, factors, memory, pass);
    stride = lpg_sums_stride(T::tile_n), at_once = T::TileM;
    threads_meet(parts_are_multiplied, 32 * T::warps); /* all warps have read the last stages */
  }
  int first = 0;
#pragma unroll 1
  do { /* once without rows of X too: the other CTAs wait at the cluster's barrier */
#pragma unroll 1
    for (int x_row = 0; x_row < min(at_once, x_rows - first); x_row += LPG_PASS_ROWS) {
      float *const to = own + x_row * stride;
      if constexpr (Splits && MostParts > T::teams) {
        if (parts > T::teams) {
          put_sums<T>(before, to, stride, first + x_row);
          put_sums<T>(product, to + T::TileM * stride, stride, first + x_row);
          continue;
        }
      }
      put_sums<T>(product, to, stride, first + x_row);
    }
    __syncwarp();
    if (split) {
      cluster_arrive();
      cluster_wait();
    }
    store_rows<T, Work>(a, pass, pass.place.m + first);
    __syncwarp();
    first += at_once;
  } while (first < x_rows);
  if (split) {
    cluster_arrive_only();
    cluster_wait();
  }
}

/* Where K is never split. */
template <class T, class Args, class Work, class Product>
__device__ inline void store_tile(const Args &a, const Work &w, int tile, const Product &product, const float *factors,
                                  uint8_t *memory) {
  store_tile<T, 0>(a, w, tile, product, product, 0, factors, memory);
}

}  // namespace
}  // namespace lpg
