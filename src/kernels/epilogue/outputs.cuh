/* What a thread does to outputs that are not the common case, which is store_fast.cuh's: eight at a time, so that a
 * type or an activation costs one branch for all of them. The arithmetic is that of column_epilogue (epilogue.cuh). */
#pragma once

#include "../operand/x_type.cuh"
#include "epilogue.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Eight outputs: of Columns neighbouring rows of W, four where vectors of four may be stored, else one, and of
 * 8 / Columns rows of X. */
template <int Columns>
struct output_block {
  static constexpr int size = 8, rows = size / Columns;
  int64_t m, n;    /* of the first output */
  int step, count; /* rows of X from one to the next; how many there are from m on */
  float v[rows][Columns];

  __device__ bool is_there(int i) const { return i * step < count; }
  __device__ float &at(int i) { return v[i / Columns][i % Columns]; }

  /* The i-th row of X; of one that is not there the last, for what is read. */
  __device__ int64_t row(int i) const { return m + min(i * step, count - 1); }

  /* Takes the sums, of rows that are there. x_row, row: where they begin. */
  template <class Sums>
  __device__ void take(const Sums &sums, int x_row, int row) {
    int place[rows];
#pragma unroll
    for (int i = 0; i < rows; i++) place[i] = is_there(i) ? sums.place(x_row + i * step, row) : -1;
    if constexpr (Columns == 4) {
      float4 four[rows];
      sums.take(four, place);
#pragma unroll
      for (int i = 0; i < rows; i++) {
        v[i][0] = four[i].x, v[i][1] = four[i].y, v[i][2] = four[i].z, v[i][3] = four[i].w;
      }
    } else {
      float one[rows];
      sums.take(one, place);
#pragma unroll
      for (int i = 0; i < rows; i++) v[i][0] = one[i];
    }
  }

  /* Integer sums, held as bits. */
  __device__ void convert_integers() {
#pragma unroll
    for (int i = 0; i < size; i++) at(i) = (float)__float_as_int(at(i));
  }

  /* factors: of the rows of W, from n on. */
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
      for (int i = 0; i < rows; i++) v[i][j] = __fmul_rn(alpha, v[i][j] * factors[j] * scale);
    }
    if (!e.x_scale) return;
#pragma unroll
    for (int i = 0; i < rows; i++) {
      const float scale = x_scale_of(e, row(i));
#pragma unroll
      for (int j = 0; j < Columns; j++) v[i][j] = __fmul_rn(v[i][j], scale);
    }
  }

  __device__ void add_c(const epilogue_args &e, float beta) {
    uint32_t c[rows][Columns];
    if (e.y_type == LPGEMM_F32) {
      load_rows((const uint32_t *)e.c, e.ldc, c);
    } else {
      load_rows((const uint16_t *)e.c, e.ldc, c);
    }
#pragma unroll
    for (int i = 0; i < size; i++) at(i) = fmaf(beta, widened(e.y_type, c[i / Columns][i % Columns]), at(i));
  }

  /* bias_row: where the first row's bias lies. */
  __device__ void add_bias(const epilogue_args &e, int64_t bias_row) {
#pragma unroll
    for (int j = 0; j < Columns; j++) {
      const float bias = load_real(e.bias_type, e.bias, bias_row + j);
#pragma unroll
      for (int i = 0; i < rows; i++) v[i][j] += bias;
    }
  }

  /* With one piece of code for all outputs, since it is long: they turn through the first place, once around. */
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
    uint32_t bits[rows][Columns];
    if (e.y_type == LPGEMM_F32) {
#pragma unroll
      for (int i = 0; i < size; i++) bits[i / Columns][i % Columns] = __float_as_uint(at(i));
      store_rows((uint32_t *)e.y, e.ldy, bits);
      return;
    }
#pragma unroll
    for (int i = 0; i < size; i += 2) {
      const uint32_t two =
          e.y_type == LPGEMM_F16 ? f16_x::round_two(at(i), at(i + 1)) : bf16_x::round_two(at(i), at(i + 1));
      bits[i / Columns][i % Columns] = two & 0xffffu;
      bits[(i + 1) / Columns][(i + 1) % Columns] = two >> 16;
    }
    store_rows((uint16_t *)e.y, e.ldy, bits);
  }

  /* Integer outputs of integer sums, which are held as bits: alpha and beta are 0 or 1. */
  __device__ void store_integers(const epilogue_args &e, float alpha, float beta) {
    uint32_t y[rows][Columns];
#pragma unroll
    for (int i = 0; i < size; i++) {
      y[i / Columns][i % Columns] = e.skip_product || alpha == 0.0f ? 0u : __float_as_uint(at(i));
    }
    if (e.c && beta != 0.0f) {
      uint32_t c[rows][Columns];
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

  /* The elements of a matrix that the outputs meet, as bits. */
  template <class Element>
  __device__ void load_rows(const Element *matrix, int64_t ld, uint32_t (&bits)[rows][Columns]) const {
#pragma unroll
    for (int i = 0; i < rows; i++) {
      const Element *const from = matrix + row(i) * ld + n;
      if constexpr (Columns == 1) {
        bits[i][0] = *from;
      } else if constexpr (sizeof(Element) == 4) {
        const uint4 four = *(const uint4 *)from;
        bits[i][0] = four.x, bits[i][1] = four.y, bits[i][2] = four.z, bits[i][3] = four.w;
      } else {
        const uint2 four = *(const uint2 *)from;
        bits[i][0] = four.x & 0xffffu, bits[i][1] = four.x >> 16;
        bits[i][2] = four.y & 0xffffu, bits[i][3] = four.y >> 16;
      }
    }
  }

  template <class Element>
  __device__ void store_rows(Element *y, int64_t ldy, const uint32_t (&bits)[rows][Columns]) const {
    y += m * ldy + n;
#pragma unroll
    for (int i = 0; i < rows; i++, y += step * ldy) {
      if (!is_there(i)) continue;
      if constexpr (Columns == 1) {
        *y = (Element)bits[i][0];
      } else if constexpr (sizeof(Element) == 4) {
        *(uint4 *)y = make_uint4(bits[i][0], bits[i][1], bits[i][2], bits[i][3]);
      } else {
        *(uint2 *)y = make_uint2(bits[i][0] | bits[i][1] << 16, bits[i][2] | bits[i][3] << 16);
      }
    }
  }
};

}  // namespace
}  // namespace lpg
