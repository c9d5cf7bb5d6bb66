/* Reads X, one code a byte, as the codes that bit planes are made of: offset binary. */
#pragma once

#include "gemm1_images.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct gemm1_x_codes {
  const uint8_t *x;
  int64_t ldx;
  int32_t k;
  uint32_t flip, mask; /* in all four bytes: the bits to invert (two's complement), and the bits of a code */

  __device__ const uint8_t *row(int64_t x_row) const { return x + x_row * ldx; }

  /* 16 codes from k = k0 on, as four words; those beyond K are zero. aligned: the row begins at a multiple of 16
   * bytes. */
  __device__ void load_sixteen(const uint8_t *row, int k0, bool aligned, uint32_t *word) const {
    if (aligned && k0 + 16 <= k) {
      const uint4 all = *(const uint4 *)(row + k0);
      word[0] = (all.x ^ flip) & mask, word[1] = (all.y ^ flip) & mask;
      word[2] = (all.z ^ flip) & mask, word[3] = (all.w ^ flip) & mask;
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      word[i] = 0;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int k_at = k0 + 4 * i + j;
        if (k_at < k) word[i] |= ((row[k_at] ^ flip) & mask & 0xff) << 8 * j;
      }
    }
  }
};

inline gemm1_x_codes x_codes_of(const lpg_call &call) {
  const lpgemm_dtype_t type = call.problem.x_type;
  const uint32_t all = 0x01010101u;
  return {(const uint8_t *)call.x, call.ldx, (int32_t)call.problem.weights->desc.k, all * lpg_stored_flip(type),
          all * ((1u << lpg_bits(type)) - 1u)};
}

}  // namespace
}  // namespace lpg
