/* Planes of bits: which bit of which word of a plane stands for which number. For C and CUDA.
 *
 * A plane has, for every row of W or X, bit i of each of the row's codes. 256 columns are 8 words: word 4 h + t has, of
 * the half h of 128 columns, the columns that lane t of a quad holds of packed weights (layouts/tile.h), bit 16 odd +
 * 8 e + s being that of column 128 h + 16 s + 8 e + 2 t + odd. The order of columns does not matter to a sum as long as
 * W and X have the same; this one makes 1-bit weights planes as they are packed, and a word of every warp's A operand a
 * word of the plane.
 *
 * Where codes stay bytes, a word has the columns 2 t, 2 t + 8, 2 t + 1, 2 t + 9 of 16. */
#ifndef LPG_KERNELS_BIT_PLANES_H
#define LPG_KERNELS_BIT_PLANES_H

#include "../../layouts/number.h"
#include "../../layouts/unit.h"

enum { LPG_BIT_PLANES_BLOCK_K = 256, LPG_BIT_PLANES_HALF_K = 128 };

/* Column, within its half of 128, of bit `bit` of lane t's word. */
LPG_FN int lpg_bit_planes_column(int t, int bit) { return bit % 8 * 16 + bit / 8 % 2 * 8 + 2 * t + bit / 16; }

/* Those bits of lane t's word that are columns of a half that has `left`. */
LPG_FN uint32_t lpg_bit_planes_columns_left(int t, int left) {
  uint32_t there = 0;
  for (int byte = 0; byte < 4; byte++) { /* its bits are every 16th column from its first on */
    const int up = left - lpg_bit_planes_column(t, 8 * byte) + 15, count = up < 16 ? 0 : up < 128 ? up / 16 : 8;
    there |= ((1u << count) - 1u) << 8 * byte;
  }
  return there;
}

/* A lane's word of a plane of W: from its `bits` packed words of a row and of a half; word i is word[i * stride]. */
LPG_FN uint32_t lpg_bit_planes_of_weights(int bits, const uint32_t *word, int stride, int plane) {
  const int unit_pairs = lpg_unit_codes(bits) / 2, unit_words = lpg_unit_words(bits);
  uint32_t out = 0;
  for (int pair = 0; pair < 16; pair++) {
    const int to = pair % 2 * 8 + pair / 2;
    const lpg_field f = lpg_field_of(bits, pair % unit_pairs);
    int from = f.word, shift = f.shift + plane;
    for (int i = 0; i < 5 && f.word < 0; i++) { /* the run of a spliced code that has the bit */
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

/* A lane's word of 16 columns of W as bytes: step s of 8 of the half. */
LPG_FN uint32_t lpg_bit_planes_weight_bytes(int bits, const uint32_t *word, int stride, int step) {
  const int unit_pairs = lpg_unit_codes(bits) / 2;
  const uint32_t *unit = word + 2 * step / unit_pairs * lpg_unit_words(bits) * stride;
  return lpg_unit_pair(bits, unit, stride, 2 * step % unit_pairs) |
         lpg_unit_pair(bits, unit, stride, 2 * step % unit_pairs + 1) << 8;
}

/* Word t of 16 columns of X, which are the bytes of four words, in that order of bytes. */
LPG_BITS_FN uint32_t lpg_bit_planes_x_bytes(const uint32_t *sixteen, int t) {
#ifdef __CUDA_ARCH__
  return __byte_perm(sixteen[t / 2], sixteen[2 + t / 2], t % 2 ? 0x7362 : 0x5140);
#else
  const uint32_t low = sixteen[t / 2] >> t % 2 * 16, high = sixteen[2 + t / 2] >> t % 2 * 16;
  return (low & 0xff) | (high & 0xff) << 8 | (low >> 8 & 0xff) << 16 | (high >> 8 & 0xff) << 24;
#endif
}

/* Lane t's word of a plane of X: from its words, as above, of the eight times 16 columns of a half. */
LPG_FN uint32_t lpg_bit_planes_of_x(const uint32_t *word, int plane) {
  uint32_t out = 0;
  for (int s = 0; s < 8; s++) out |= (word[s] >> plane & 0x01010101u) << s;
  return out;
}

#endif
