/* Bit planes for C and CUDA: which bit of which word of a plane stands for which k.
 *
 * Plane i has bit i of every code of a row of W or X. 256 k of a row are 8 words. Word 4 h + t covers, of half h
 * (128 k), the k's that lane t of a quad holds of packed weights (layouts/tile.h): its bit 16 odd + 8 e + s is k =
 * 128 h + 16 s + 8 e + 2 t + odd. The order of the k's does not change a sum, as long as W and X use the same. With
 * this order packed 1-bit weights are planes as they lie, and a word of a lane's A operand is a word of the plane.
 *
 * Where codes stay bytes, a word has k = 2 t, 2 t + 8, 2 t + 1, 2 t + 9 of 16. */
#ifndef LPG_KERNELS_BIT_PLANES_H
#define LPG_KERNELS_BIT_PLANES_H

#include "../../layouts/number.h"
#include "../../layouts/unit.h"

enum { LPG_BIT_PLANES_BLOCK_K = 256, LPG_BIT_PLANES_HALF_K = 128 };

/* The k, within its half of 128, of bit `bit` of lane t's word. */
LPG_FN int lpg_bit_planes_column(int t, int bit) { return bit % 8 * 16 + bit / 8 % 2 * 8 + 2 * t + bit / 16; }

/* The bits of lane t's word whose k is below `left`. */
LPG_FN uint32_t lpg_bit_planes_columns_left(int t, int left) {
  uint32_t there = 0;
  for (int byte = 0; byte < 4; byte++) { /* a byte's bits are every 16th k from its first on */
    const int up = left - lpg_bit_planes_column(t, 8 * byte) + 15, count = up < 16 ? 0 : up < 128 ? up / 16 : 8;
    there |= ((1u << count) - 1u) << 8 * byte;
  }
  return there;
}

/* Lane t's word of a plane of W, from the packed words that the lane holds of one row and half; there are `bits` of
 * them, word i is word[i * stride]. */
LPG_FN uint32_t lpg_bit_planes_of_weights(int bits, const uint32_t *word, int stride, int plane) {
  const int unit_pairs = lpg_unit_codes(bits) / 2, unit_words = lpg_unit_words(bits);
  uint32_t out = 0;
  for (int pair = 0; pair < 16; pair++) {
    const int to = pair % 2 * 8 + pair / 2;
    const lpg_field f = lpg_field_of(bits, pair % unit_pairs);
    int from = f.word, shift = f.shift + plane;
    for (int i = 0; i < 5 && f.word < 0; i++) { /* a spliced code: the run that has the bit */
      if (i >= lpg_splice_runs(bits)) continue;
      const lpg_run r = lpg_splice(bits, pair % unit_pairs, i);
      if (plane < r.code_bit || plane >= r.code_bit + r.bits) continue;
      from = r.word;
      shift = r.shift + plane - r.code_bit;
    }
    const uint32_t w = word[(pair / unit_pairs * unit_words + from) * stride];
    out |= (to >= shift ? w << (to - shift) : w >> (shift - to)) & 0x00010001u << to;
  }
  return out;
}

/* Lane t's word of 16 k of W as bytes: MMA step `step` of the half's 8. */
LPG_FN uint32_t lpg_bit_planes_weight_bytes(int bits, const uint32_t *word, int stride, int step) {
  const int unit_pairs = lpg_unit_codes(bits) / 2;
  const uint32_t *unit = word + 2 * step / unit_pairs * lpg_unit_words(bits) * stride;
  return lpg_unit_pair(bits, unit, stride, 2 * step % unit_pairs) |
         lpg_unit_pair(bits, unit, stride, 2 * step % unit_pairs + 1) << 8;
}

/* Word t of 16 k of X in the same order of bytes; `sixteen`: the 16 bytes as four words. */
LPG_BITS_FN uint32_t lpg_bit_planes_x_bytes(const uint32_t *sixteen, int t) {
#ifdef __CUDA_ARCH__
  return __byte_perm(sixteen[t / 2], sixteen[2 + t / 2], t % 2 ? 0x7362 : 0x5140);
#else
  const uint32_t low = sixteen[t / 2] >> t % 2 * 16, high = sixteen[2 + t / 2] >> t % 2 * 16;
  return (low & 0xff) | (high & 0xff) << 8 | (low >> 8 & 0xff) << 16 | (high >> 8 & 0xff) << 24;
#endif
}

/* Lane t's word of a plane of X, from the lane's words (as above) of the half's 8 times 16 k. */
LPG_FN uint32_t lpg_bit_planes_of_x(const uint32_t *word, int plane) {
  uint32_t out = 0;
  for (int s = 0; s < 8; s++) out |= (word[s] >> plane & 0x01010101u) << s;
  return out;
}

#endif
