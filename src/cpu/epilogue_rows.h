/* The epilogue for the 16 outputs of a row tile at once, in the instruction set of the file that includes it. */
#ifndef LPG_CPU_EPILOGUE_ROWS_H
#define LPG_CPU_EPILOGUE_ROWS_H

#include <math.h>

#include "epilogue.h"

/* Nothing but a factor and one rounding: what these functions do themselves. */
static inline int lpg_is_plain(const lpg_call *call) {
  return call->problem.y_type != LPGEMM_I32 && !call->skip_product && call->beta == 0.0f && !call->bias &&
         call->activation == LPGEMM_ACTIVATION_NONE;
}

/* fp64 to fp32, rounded to odd: rounding that again, to a narrower format, is as good as rounding once. One NaN. */
static inline uint32_t lpg_odd_f32_bits(double x) {
  float nearest = (float)x;
  double back = (double)nearest;
  uint32_t bits = lpg_f32_bits(nearest), odd = (bits - (fabs(back) > fabs(x))) | 1u;
  bits = back == x ? bits : odd;
  return x == x ? bits : 0x7fc00000u;
}

/* fp32 to fp16, for numbers that are rounded to odd. In fp32 a half and a tiny number add up to a multiple of 2^-24. */
static inline uint16_t lpg_odd_to_f16(uint32_t bits) {
  uint32_t a = bits & 0x7fffffffu, normal = (a + 0xfffu + (a >> 13 & 1u) - (112u << 23)) >> 13;
  uint32_t tiny = lpg_f32_bits(lpg_bits_f32(a) + 0.5f) - 0x3f000000u;
  uint32_t half = (int32_t)a < (113 << 23) ? tiny : normal;
  half = (int32_t)a >= (143 << 23) ? 0x7c00u : half;
  half = (int32_t)a > 0x7f800000 ? 0x7e00u : half;
  return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

/* Stores the first `count` of 16 outputs; nearly always all, of a size that the compiler knows. */
static inline void lpg_store_outputs(char *y, const void *outputs, int count, size_t each) {
  if (count == LPG_TILE_ROWS) {
    memcpy(y, outputs, LPG_TILE_ROWS * each);
  } else {
    memcpy(y, outputs, (size_t)count * each);
  }
}

/* As lpgemm_i_epilogue() for the outputs n .. n + count - 1, at most 16, of which there are 16 sums. */
static inline void lpg_epilogue_tile(const lpg_call *call, int64_t m, int64_t n, int count, const double *sums) {
  if (call->problem.paired) {
    const int64_t first = n / 2, left = call->problem.weights->outputs - first;
    for (int64_t i = 0; i < LPG_PAIR_ROWS && i < left; i++) {
      lpgemm_i_epilogue_pair(call, m, first + i, sums[i], sums[i + LPG_PAIR_ROWS]);
    }
    return;
  }
  if (!lpg_is_plain(call)) {
    for (int i = 0; i < count; i++) lpgemm_i_epilogue(call, m, n + i, sums[i]);
    return;
  }
  uint32_t bits[LPG_TILE_ROWS];
  uint16_t half[LPG_TILE_ROWS];
  const double factor = lpg_factor_of_row(call, m);
  double scaled[LPG_TILE_ROWS];
  if (call->row_scales) { /* of whole row tiles, padding included */
    for (int i = 0; i < LPG_TILE_ROWS; i++) scaled[i] = sums[i] * (double)call->row_scales[n + i];
    sums = scaled;
  }
  char *y = (char *)call->y + (m * call->ldy + n) * (call->problem.y_type == LPGEMM_F32 ? 4 : 2);
  if (call->problem.y_type == LPGEMM_F32) {
    for (int i = 0; i < LPG_TILE_ROWS; i++) {
      float v = (float)(factor * sums[i]);
      bits[i] = v == v ? lpg_f32_bits(v) : 0x7fc00000u;
    }
    lpg_store_outputs(y, bits, count, sizeof bits[0]);
    return;
  }
  for (int i = 0; i < LPG_TILE_ROWS; i++) bits[i] = lpg_odd_f32_bits(factor * sums[i]);
  if (call->problem.y_type == LPGEMM_F16) {
    for (int i = 0; i < LPG_TILE_ROWS; i++) half[i] = lpg_odd_to_f16(bits[i]);
  } else {
    for (int i = 0; i < LPG_TILE_ROWS; i++) half[i] = lpg_f32_to_bf16(lpg_bits_f32(bits[i]));
  }
  lpg_store_outputs(y, half, count, sizeof half[0]);
}

#endif
