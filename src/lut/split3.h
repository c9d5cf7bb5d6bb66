/* 3-bit codes as 4-bit ones: from the three vectors that hold a row of a 3-bit tile to four in the form of 4-bit tiles,
 * so that what follows is the same. Part of lookup.c. */
#ifndef LPG_LUT_SPLIT3_H
#define LPG_LUT_SPLIT3_H

#include "../layouts/unit.h"
#include "lut.h"

typedef uint32_t split_words __attribute__((vector_size(LPG_LUT_VECTOR)));

/* Words 0..11 of a lane lie in 16 bytes of three vectors, those of rows g and g + 8 in turn; a unit of three words a
 * row begins at word 0 and at word 6. out[o] has, for both rows of unit 0 and then of unit 1, a word with the steps 2 o
 * and 2 o + 1 of the unit, in nibbles as FORMAT.md has them for 4 bits. */
INLINE void split3(const split_words in[3], split_words out[4]) {
#if LPG_LUT_VECTOR == 16
#define BLEND(a, b) (split_words) vcombine_u32(vget_low_u32((uint32x4_t)(a)), vget_high_u32((uint32x4_t)(b)))
#define CROSS(a, b) (split_words) vextq_u32((uint32x4_t)(a), (uint32x4_t)(b), 2)
#elif LPG_LUT_VECTOR == 64
#define BLEND(a, b) (split_words) _mm512_mask_blend_epi64(0xaa, (__m512i)(a), (__m512i)(b))
#define CROSS(a, b) (split_words) _mm512_alignr_epi8((__m512i)(b), (__m512i)(a), 8)
#else
#define BLEND(a, b) (split_words) _mm256_blend_epi32((__m256i)(a), (__m256i)(b), 0xcc)
#define CROSS(a, b) (split_words) _mm256_alignr_epi8((__m256i)(b), (__m256i)(a), 8)
#endif
  const split_words unit[3] = {BLEND(in[0], in[1]), CROSS(in[0], in[2]), BLEND(in[1], in[2])};
#undef BLEND
#undef CROSS
#pragma GCC unroll 4
  for (int o = 0; o < 4; o++) {
    out[o] = (split_words){0};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      int pair = 4 * o + i, to = 4 * (i / 2) + 8 * (i % 2);
      lpg_field f = lpg_field_of(3, pair);
      for (int run = 0; run < (f.word < 0 ? lpg_splice_runs(3) : 1); run++) {
        lpg_run whole = {0, 3, f.word, f.shift}, r = f.word < 0 ? lpg_splice(3, pair, run) : whole;
        int left = to + r.code_bit - r.shift;
        split_words moved = left < 0 ? unit[r.word] >> (uint32_t)-left : unit[r.word] << (uint32_t)left;
        out[o] |= moved & lpg_half_masks(r.bits) << (to + r.code_bit);
      }
    }
  }
}

#endif
