/* From the sums of a work tile, which warps hold in registers, through shared memory to the outputs. */
#pragma once

#include "../operand/x_type.cuh"
#include "../plan/scheduler.cuh"
#include "epilogue.cuh"
#include "store_pairs.cuh"
#include "sums.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Sets the sums of row tiles to zero. */
template <int RowTiles, int Count>
__device__ inline void clear_sums(float (&sum)[RowTiles][Count]) {
#pragma unroll
  for (int r = 0; r < RowTiles; r++) {
#pragma unroll
    for (int i = 0; i < Count; i++) sum[r][i] = 0.0f;
  }
}

/* ---- outputs ---- */

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

/* One element of Y or C, or four that are aligned, as bits. */
template <class Element, int Columns>
__device__ inline void load_elements(const Element *from, uint32_t (&bits)[Columns]) {
  static_assert(Columns == 1 || Columns == 4, "vectors of four");
  if constexpr (Columns == 1) {
    bits[0] = *from;
  } else if constexpr (sizeof(Element) == 4) {
    const uint4 four = *(const uint4 *)from;
    bits[0] = four.x, bits[1] = four.y, bits[2] = four.z, bits[3] = four.w;
  } else {
    const uint2 four = *(const uint2 *)from;
    bits[0] = four.x & 0xffffu, bits[1] = four.x >> 16, bits[2] = four.y & 0xffffu, bits[3] = four.y >> 16;
  }
}

template <class Element, int Columns>
__device__ inline void store_elements(Element *to, const uint32_t (&bits)[Columns]) {
  if constexpr (Columns == 1) {
    *to = (Element)bits[0];
  } else if constexpr (sizeof(Element) == 4) {
    *(uint4 *)to = make_uint4(bits[0], bits[1], bits[2], bits[3]);
  } else {
    *(uint2 *)to = make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
  }
}

/* The outputs of Rows rows of X by Columns neighbouring rows of W, `step` rows of X from one to the next; only the
 * first `count` rows of X are there. The arithmetic is that of column_epilogue, but a type or an activation costs one
 * branch for all of them, and what is added to them is loaded when it is due, since registers are few. */
template <int Rows, int Columns>
struct output_block {
  static constexpr int size = Rows * Columns;
  int64_t m, n;
  int step, count;
  float v[Rows][Columns];

  __device__ int64_t row(int i) const { return m + min(i * step, count - 1); }
  __device__ float &at(int i) { return v[i / Columns][i % Columns]; }

  /* factors: of the rows of W. */
  __device__ void scale(const epilogue_args &e, float alpha, const float *factors) {
    if (e.skip_product || alpha == 0.0f) { /* whatever the sums are */
#pragma unroll
      for (int i = 0; i < size; i++) at(i) = 0.0f;
      return;
    }
#pragma unroll
    for (int j = 0; j < Columns; j++) {
      const float scale = e.row_scales ? e.global_scale * e.row_scales[n + j] : e.global_scale;
#pragma unroll
      for (int i = 0; i < Rows; i++) v[i][j] = __fmul_rn(alpha, v[i][j] * factors[j] * scale);
    }
    if (!e.x_scale) return;
#pragma unroll
    for (int i = 0; i < Rows; i++) {
      const float scale = x_scale_of(e, row(i));
#pragma unroll
      for (int j = 0; j < Columns; j++) v[i][j] = __fmul_rn(v[i][j], scale);
    }
  }

  __device__ void add_c(const epilogue_args &e, float beta) {
    uint32_t c[Rows][Columns];
    if (e.y_type == LPGEMM_F32) {
      load_rows((const uint32_t *)e.c, e.ldc, c);
    } else {
      load_rows((const uint16_t *)e.c, e.ldc, c);
    }
#pragma unroll
    for (int i = 0; i < size; i++) at(i) = fmaf(beta, widened(e.y_type, c[i / Columns][i % Columns]), at(i));
  }

  /* bias_row: where the first column's bias lies. */
  __device__ void add_bias(const epilogue_args &e, int64_t bias_row) {
#pragma unroll
    for (int j = 0; j < Columns; j++) {
      const float bias = widened(e.bias_type, e.bias_type == LPGEMM_F32 ? ((const uint32_t *)e.bias)[bias_row + j]
                                                                        : ((const uint16_t *)e.bias)[bias_row + j]);
#pragma unroll
      for (int i = 0; i < Rows; i++) v[i][j] += bias;
    }
  }

  /* With one piece of code for all values, since it is long: they turn through the first place, once around. */
  __device__ void activate(lpgemm_activation_t activation) {
    if (activation == LPGEMM_ACTIVATION_NONE) return;
#pragma unroll 1
    for (int turn = 0; turn < size; turn++) {
      const float one = lpg::activate(at(0), activation);
#pragma unroll
      for (int i = 1; i < size; i++) at(i - 1) = at(i);
      at(size - 1) = one;
    }
  }

  __device__ void store(const epilogue_args &e) {
    uint32_t bits[Rows][Columns];
    if (e.y_type == LPGEMM_F32) {
#pragma unroll
      for (int i = 0; i < size; i++) bits[i / Columns][i % Columns] = __float_as_uint(at(i));
      store_rows((uint32_t *)e.y, e.ldy, bits);
      return;
    }
#pragma unroll
    for (int i = 0; i < size; i += 2) {
      const uint32_t two = round_two(e, make_float2(at(i), at(i + 1)));
      bits[i / Columns][i % Columns] = two & 0xffffu;
      bits[(i + 1) / Columns][(i + 1) % Columns] = two >> 16;
    }
    store_rows((uint16_t *)e.y, e.ldy, bits);
  }

  /* Integer outputs of integer sums, which are held as bits: alpha and beta are 0 or 1. */
  __device__ void store_integers(const epilogue_args &e, float alpha, float beta) {
    uint32_t y[Rows][Columns];
#pragma unroll
    for (int i = 0; i < size; i++) {
      y[i / Columns][i % Columns] = e.skip_product || alpha == 0.0f ? 0u : __float_as_uint(at(i));
    }
    if (e.c && beta != 0.0f) {
      uint32_t c[Rows][Columns];
      load_rows((const uint32_t *)e.c, e.ldc, c);
#pragma unroll
      for (int i = 0; i < size; i++) y[i / Columns][i % Columns] += c[i / Columns][i % Columns];
    }
    store_rows((uint32_t *)e.y, e.ldy, y);
  }

 private:
  __device__ static float widened(lpgemm_dtype_t type, uint32_t bits) {
    return type == LPGEMM_F32   ? __uint_as_float(bits)
           : type == LPGEMM_F16 ? f16_x::widen((uint16_t)bits)
                                : bf16_x::widen((uint16_t)bits);
  }

  template <class Element>
  __device__ void load_rows(const Element *c, int64_t ldc, uint32_t (&bits)[Rows][Columns]) const {
#pragma unroll
    for (int i = 0; i < Rows; i++) load_elements(c + row(i) * ldc + n, bits[i]);
  }

  template <class Element>
  __device__ void store_rows(Element *y, int64_t ldy, const uint32_t (&bits)[Rows][Columns]) const {
    y += m * ldy + n;
#pragma unroll
    for (int i = 0; i < Rows; i++, y += step * ldy) {
      if (i * step < count) store_elements(y, bits[i]);
    }
  }
};

/* ---- sums ---- */

/* Sums of a warp in its own shared memory, sums[row of X][row]. */
template <int Rows>
struct own_sums {
  const float *sums;

  /* Count sums of each of Columns neighbouring rows: of rows of X x_row, x_row + step and so on. Those from x_rows on
   * mean nothing, but there is room for LPG_PASS_ROWS. */
  template <int Count, int Columns>
  __device__ void take(float (&sum)[Count][Columns], int x_row, int step, int x_rows, int row) const {
    (void)x_rows;
#pragma unroll
    for (int i = 0; i < Count; i++) {
      const float *const from = sums + (x_row + i * step) * lpg_sums_stride(Rows) + row;
      if constexpr (Columns == 4) {
        const float4 four = *(const float4 *)from;
        sum[i][0] = four.x, sum[i][1] = four.y, sum[i][2] = four.z, sum[i][3] = four.w;
      } else {
        sum[i][0] = *from;
      }
    }
  }
};

/* store_sums() where a thread has Columns neighbouring rows of W. */
template <class T, int Columns, int Rows, int Threads, class Sums>
__device__ inline void store_columns(const epilogue_args &e, const Sums &sums, int n_end, int x_rows, int thread,
                                     const float *factors, const tile_place &place) {
  static_assert(Threads % (Rows / Columns) == 0, "a thread has columns of its own");
  constexpr int threads = Rows / Columns, step = Threads / threads; /* threads: of a row of X; step: its rows at once */
  constexpr int values = Threads == 32 || Columns == 4 ? 8 : 4, each = values / Columns; /* as registers allow */
  static_assert(Threads != 32 || LPG_PASS_ROWS % (each * step) == 0, "own sums have room for LPG_PASS_ROWS rows of X");
  const int row = thread % threads * Columns, n = place.n + row;
  if (n >= n_end) return;
  const float alpha = alpha_of(e), beta = beta_of(e);
#pragma unroll 1
  for (int x_row = thread / threads; x_row < x_rows; x_row += each * step) {
    output_block<each, Columns> block = {place.m + x_row, n, step, x_rows - x_row, {}};
    sums.take(block.v, x_row, step, x_rows, row);
    if constexpr (T::integer_sums) {
      if (e.y_type == LPGEMM_I32) {
        block.store_integers(e, alpha, beta);
        continue;
      }
    }
    block.scale(e, alpha, factors + row);
    if (e.c && beta != 0.0f) block.add_c(e, beta);
    if (e.bias) block.add_bias(e, place.bias + n);
    block.activate(e.activation);
    block.store(e);
  }
}

/* Stores the outputs of x_rows rows of X by Rows rows of W, from `place` on. Threads threads share the work, this is
 * number `thread`. factors: of the Rows rows. */
template <class T, int Rows, int Threads, class Sums, class Args>
__device__ inline void store_sums(const Args &a, const Sums &sums, int x_rows, int thread, const float *factors,
                                  const tile_place &place) {
  const epilogue_args &e = a.epilogue;
  x_rows = min(x_rows, place.m_end - place.m);
  if (e.vector >= 4 && (place.n + Rows <= a.n || a.n % 4 == 0)) {
    store_columns<T, 4, Rows, Threads>(e, sums, a.n, x_rows, thread, factors, place);
  } else {
    store_columns<T, 1, Rows, Threads>(e, sums, a.n, x_rows, thread, factors, place);
  }
}

/* The same for work tiles whose rows of W may come in pairs. */
template <class T, int Rows, int Threads, class Work, class Sums, class Args>
__device__ inline void store_rows(const Args &a, const Sums &sums, int x_rows, int thread, const float *factors,
                                  const tile_place &place) {
  if constexpr (Work::is_placed) {
    if (a.epilogue.paired) return store_pairs<Rows, Threads>(a, sums, x_rows, thread, factors, place);
  }
  store_sums<T, Rows, Threads>(a, sums, x_rows, thread, factors, place);
}

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
          own[(8 * j + i % 2) * stride + r * LPG_TILE_ROWS + i / 2 * 8] = product.sum[r][(First / 8 + j) * 4 + i];
        }
      }
    }
  }
}

/* The same to `sums`; `row`: where the warp's first row goes. */
template <class T, class Product>
__device__ inline void put_sums(const Product &product, float *sums, int stride, int row, int first) {
  const int lane = threadIdx.x % 32;
  put_own_sums<T, 0, T::TileM>(product, sums + 2 * (lane % 4) * stride + row + lane / 4, stride, first);
}

/* Stores a warp's rows of a work tile, 16 rows of X a pass, through the warp's own shared memory. factors: of all rows
 * of the work tile. */
template <class T, class Args, class Work, class Product>
__device__ inline void store_tile(const Args &a, const Work &w, int tile, const Product &product, const float *factors,
                                  uint8_t *memory) {
  constexpr int x_rows = LPG_PASS_ROWS, rows = T::row_tiles * LPG_TILE_ROWS;
  const int lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * rows;
  tile_place place = place_of<T>(a, w, tile);
  place.n += first_row;
  float *const sums = (float *)(memory + a.plan.sums + threadIdx.x / 32 * lpg_sums_bytes(x_rows, rows));
#pragma unroll 1
  for (int first = 0; first < T::TileM && place.m < place.m_end; first += x_rows, place.m += x_rows) {
    put_sums<T>(product, sums, lpg_sums_stride(rows), 0, first);
    __syncwarp();
    store_rows<T, rows, 32, Work>(a, own_sums<rows>{sums}, x_rows, lane, factors + first_row, place);
    __syncwarp();
  }
}

}  // namespace
}  // namespace lpg
