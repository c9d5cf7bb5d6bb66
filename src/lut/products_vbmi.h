/* Products of codes and digits of activations with VPDPBUSD, in place of lookups, for weights of 2 to 4 bits. Part of
 * lookup.c.
 *
 * It multiplies 64 codes by 64 signed bytes and adds up four neighbours, for every width alike, where a lookup takes
 * two instructions a bit for four columns. A vector of a packed tile is what the lanes t = 0..3 of one g hold: two
 * words w of row g and of row g + 8 (h), in field f of their bytes (two of 4 bits, or four of 2 bits) the codes of four
 * columns of step fields * w + f. So nothing is moved but the upper fields. */
#ifndef LPG_LUT_PRODUCTS_H
#define LPG_LUT_PRODUCTS_H

#include "split3.h"

enum { LPG_LUT_FIELDS = 8 }; /* of all tiles of a block */

/* Fields of a byte; codes of 3 bits are loaded to 4. */
static inline int fields_of(int bits) { return bits == 2 ? 4 : 2; }

/* Columns of a tile. */
static inline int product_columns(int fields) { return 2 * LPG_STEP_K * fields; }

/* The activations of a block: q = sum of 256^d * digit d, in the order of the words' bytes, field after field of tile
 * after tile. */
typedef struct lut_products {
  _Alignas(LPG_LUT_ALIGN) int8_t digit[LPG_LUT_FIELDS][LPG_LUT_DIGITS][64];
} lut_products;

/* Digits are from -128 to 127: what is left without the two lower ones, which are at most 127 * 257, is within 129 of
 * the nearest there is. If they are made to be left out, a half goes up in one lane and down in the next: with short
 * mantissas halves are frequent. */
static void split_block(int fields, int is_rounded, const lpg_lut_block *b, lut_products *out) {
  const double inverse = 1.0 / b->unit, rounder = 0x1.8p52; /* adding it leaves an integer */
  int8_t digit[LPG_LUT_DIGITS][LPG_LUT_K];
  for (int c = 0; c < LPG_LUT_K; c++) {
    const int is_kept = b->kept[c / 32] >> c % 32 & 1;
    const double x = is_kept ? 0.0 : (double)b->x[c];
    int32_t q = (int32_t)((x * inverse + rounder) - rounder) - (is_rounded & lpg_lut_lane(c)) * 129;
    for (int d = 0; d < LPG_LUT_DIGITS; d++) {
      digit[d][c] = (int8_t)(uint8_t)q;
      q = (q - digit[d][c]) >> 8;
    }
  }
  uint8_t from[64]; /* of the first field's columns in a tile, which two vectors hold */
  for (int i = 0; i < 64; i++) from[i] = (uint8_t)(LPG_STEP_K * (i / 8 % 2 * fields) + lpg_lut_column(i / 16, i % 4));
  const __m512i first = _mm512_loadu_si512(from);
  for (int f = 0; f < LPG_LUT_FIELDS; f++) {
    const int tile = f / fields * product_columns(fields);
    const __m512i columns = _mm512_add_epi8(first, _mm512_set1_epi8((char)(LPG_STEP_K * (f % fields))));
    for (int d = 0; d < LPG_LUT_DIGITS; d++) {
      const __m512i low = _mm512_loadu_si512(digit[d] + tile);
      const __m512i high = _mm512_loadu_si512(digit[d] + tile + product_columns(fields) - 64);
      _mm512_store_si512(out->digit[f][d], _mm512_permutex2var_epi8(low, columns, high));
    }
  }
}

/* A tile of 3-bit codes as four of 4-bit ones. */
static void widen_codes(const uint8_t *tile, uint8_t *out) {
  for (int g = 0; g < 8; g++) {
    split_words three[3], four[4];
    for (int i = 0; i < 3; i++) memcpy(&three[i], tile + i * 512 + g * 64, 64);
    split3(three, four);
    for (int i = 0; i < 2; i++) { /* four[o] has steps 2 o and 2 o + 1 of both units */
      const __m512i a = (__m512i)four[2 * i], b = (__m512i)four[2 * i + 1];
      _mm512_storeu_si512(out + i * 512 + g * 64, _mm512_unpacklo_epi64(a, b));
      _mm512_storeu_si512(out + (2 + i) * 512 + g * 64, _mm512_unpackhi_epi64(a, b));
    }
  }
}

/* Of vectors g = 0..7, each [t][w][h], the sums over t and w, in the order of the sums. */
INLINE __m512i add_lanes(const __m512i in[8]) {
  const __m512i sort = _mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
  __m512i two[4], four[2];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    two[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(in[2 * i], in[2 * i + 1]),
                              _mm512_unpackhi_epi64(in[2 * i], in[2 * i + 1]));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    four[i] = _mm512_add_epi32(_mm512_shuffle_i64x2(two[2 * i], two[2 * i + 1], 0x44),
                               _mm512_shuffle_i64x2(two[2 * i], two[2 * i + 1], 0xee));
  }
  const __m512i slots =
      _mm512_add_epi32(_mm512_shuffle_i64x2(four[0], four[1], 0x88), _mm512_shuffle_i64x2(four[0], four[1], 0xdd));
  return _mm512_permutexvar_epi32(sort, slots);
}

/* Over the steps [first, end) of a block, whole tiles or the last ones of a row, by the upper `digits` digits:
 * 2^16 * upper + lower is the sum of q * code. A sum is below 2^7 * 15 * 256 * 257 < 2^27. */
INLINE void add_products(int fields, int digits, const uint8_t *codes, const lut_products *x, int first, int end,
                         lut_sums *sums) {
  const __m512i field = _mm512_set1_epi8(fields == 2 ? 15 : 3);
  __m512i upper[8], lower[8];
#pragma GCC unroll 2
  for (int part = 0; part < 8; part += 4) { /* of g */
    __m512i sum[4][LPG_LUT_DIGITS];
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
#pragma GCC unroll 4
      for (int d = 0; d < LPG_LUT_DIGITS; d++) sum[g][d] = _mm512_setzero_si512();
    }
    for (int tile = first / (2 * fields); tile * 2 * fields < end; tile++) {
      __m512i all[4];
#pragma GCC unroll 4
      for (int g = 0; g < 4; g++) {
        const int at = tile * 512 + (part + g) * 64;
        all[g] = _mm512_loadu_si512(codes + at);
      }
#pragma GCC unroll 4
      for (int f = 0; f < fields; f++) {
        const uint8_t shift = (uint8_t)(8 / fields * f); /* gcc counts shifts in int, clang in unsigned */
        __m512i code[4];
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
          code[g] = f == 0 ? all[g] : _mm512_srli_epi16(all[g], shift);
          code[g] = _mm512_and_si512(code[g], field);
        }
#pragma GCC unroll 4
        for (int d = LPG_LUT_DIGITS - digits; d < LPG_LUT_DIGITS; d++) {
          const __m512i q = _mm512_load_si512(x->digit[tile * fields + f][d]);
#pragma GCC unroll 4
          for (int g = 0; g < 4; g++) sum[g][d] = _mm512_dpbusd_epi32(sum[g][d], code[g], q);
        }
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
      upper[part + g] = _mm512_add_epi32(_mm512_slli_epi32(sum[g][3], 8), sum[g][2]);
      lower[part + g] = _mm512_add_epi32(_mm512_slli_epi32(sum[g][1], 8), sum[g][0]);
    }
  }
  _mm512_store_si512(sums->upper, add_lanes(upper));
  _mm512_store_si512(sums->lower, digits > 2 ? add_lanes(lower) : _mm512_setzero_si512());
}

#endif
