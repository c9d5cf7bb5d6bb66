/* From the packed form and from X to numbers in fp32, a vector at a time. Part of blocked.c and tiles.c. */
#ifndef LPG_CPU_UNPACK_H
#define LPG_CPU_UNPACK_H

#include "range.h"
#include "vectors.h"
#include "weight.h"

enum { LPG_MAX_PAIRS = LPG_MAX_TILE_K / 8, LPG_MAX_WORDS = LPG_TILE_ROWS * LPG_MAX_TILE_K * 7 / 32 }; /* of a tile */

/* What it takes to read the operands of a call. */
typedef struct unpacker {
  const lpg_call *call;
  const lpg_packed *packed;
  int runs[LPG_MAX_PAIRS];
  lpg_run run[LPG_MAX_PAIRS][LPG_MAX_RUNS];
  float x_value[256], code_value[256];    /* of one-byte X; of stored codes of floats and codebooks */
  float section_value[LPG_SECTIONS][256]; /* of one-byte scales and zeros */
} unpacker;

/* ---- X ---- */

/* Converts `count` numbers, starting with element i of an array. table: values of one-byte types. */
static void to_floats(lpgemm_dtype_t type, const void *array, int64_t i, int64_t count, const float *table,
                      float *out) {
  int64_t done = 0;
  if (type == LPGEMM_F32) {
    memcpy(out, (const float *)array + i, (size_t)count * sizeof *out);
    return;
  }
  if (lpg_bytes(type) == 1) {
    for (; done < count; done++) out[done] = table[((const uint8_t *)array)[i + done]];
    return;
  }
  const uint16_t *halves = (const uint16_t *)array + i;
  if (type == LPGEMM_F16) {
    for (; done + V <= count; done += V) store(out + done, halves_to_floats(halves + done));
  } else if (type == LPGEMM_BF16) {
    for (; done + V <= count; done += V) store(out + done, brains_to_floats(halves + done));
  }
  for (; done < count; done++) out[done] = lpg_load(type, array, i + done);
}

/* ---- W ---- */

/* V values of a section's type, from slot `first` of the 16 at `at` on; table: of those types of one byte that have no
 * vectors here. */
INLINE vfloat load_slots(lpgemm_dtype_t type, const uint8_t *at, int first, const float *table) {
  const uint16_t *halves = (const uint16_t *)(const void *)at + first;
  if (type == LPGEMM_F16) return halves_to_floats(halves);
  if (type == LPGEMM_UINT(6) || type == LPGEMM_UINT(8)) {
    return words_to_floats(bytes_to_words(at + first));
  }
  if (type == LPGEMM_UINT(4)) return words_to_floats(nibbles_to_words(at + first / 2));
  if (type == LPGEMM_INT(8)) {
    return __builtin_convertvector((vint)(bytes_to_words(at + first) << 24) >> 24, vfloat);
  }
  if (type == LPGEMM_E8M0) { /* the least is subnormal, the greatest NaN */
    const vuint code = bytes_to_words(at + first);
    return (vfloat)(code << 23 | ((vuint)((code == 0u) | (code == 255u)) & 0x400000u));
  }
  if (type == LPGEMM_E4M3) return eights_to_floats(bytes_to_words(at + first));
  if (type == LPGEMM_BF16) return brains_to_floats(halves);
  if (type == LPGEMM_F32) return load((const float *)(const void *)at + first);
  if (type == LPGEMM_U16) return words_to_floats(halves_to_words(halves));
  float values[V];
  for (int i = 0; i < V; i++) values[i] = table[at[first + i]];
  return load(values);
}

/* Writes the 16 values that a section has for a row tile and a column, in slot order. */
static void section_to_floats(const unpacker *u, lpg_section_id id, int64_t row_tile, int64_t k, float *out) {
  lpgemm_dtype_t type = lpg_section_type(&u->packed->desc, id);
  const lpg_axis *axis = lpg_section_axis(u->packed, id);
  const uint8_t *at =
      u->call->section[id] +
      lpg_value_offset(type, axis->padded, lpg_scale_row(u->packed, row_tile * LPG_TILE_ROWS), k / axis->k);
  for (int slot = 0; slot < LPG_TILE_ROWS; slot += V)
    store(out + slot, load_slots(type, at, slot, u->section_value[id]));
}

/* 0: fp32 may not hold the products. */
static inline int multiply_by_section(const unpacker *u, lpg_section_id id, int64_t row_tile, int64_t k,
                                      float *values) {
  static const lpg_magnitudes factors = {LPG_TINY, LPG_HUGE};
  float factor[LPG_TILE_ROWS];
  if (lpg_section_type(&u->packed->desc, id) == 0) return 1;
  section_to_floats(u, id, row_tile, k, factor);
  for (int i = 0; i < LPG_TILE_ROWS; i++) values[i] *= factor[i];
  return lpg_is_within(factors, factor);
}

/* Brings the words of a tile into the order [word of the lane's row][t][slot]: the words of rows g and g + 8 alternate
 * in the packed form, so a pair of them is one 64-bit number, and slots 2g and 2g + 1. */
#if defined(__AVX512F__)
/* Every 512 bytes are 8 by 8 such numbers, [g][t][two words], which are transposed. */
static void untangle(int bits, const uint8_t *tile, uint32_t *words) {
  for (int part = 0; part < lpg_lane_words(bits) / 4; part++, tile += 512, words += 8 * LPG_TILE_ROWS) {
#pragma GCC unroll 2
    for (int w = 0; w < 2; w++) {
      __m512i two[4], lower[2], upper[2];
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) {
        const __m512i even = _mm512_loadu_si512(tile + i * 128), odd = _mm512_loadu_si512(tile + i * 128 + 64);
        two[i] = w ? _mm512_unpackhi_epi64(even, odd) : _mm512_unpacklo_epi64(even, odd);
      }
#pragma GCC unroll 2
      for (int i = 0; i < 2; i++) { /* t = 0 and 1, t = 2 and 3 */
        lower[i] = _mm512_shuffle_i64x2(two[2 * i], two[2 * i + 1], 0x44);
        upper[i] = _mm512_shuffle_i64x2(two[2 * i], two[2 * i + 1], 0xee);
      }
      uint32_t *out = words + w * 4 * LPG_TILE_ROWS;
      _mm512_storeu_si512(out, _mm512_shuffle_i64x2(lower[0], lower[1], 0x88));
      _mm512_storeu_si512(out + LPG_TILE_ROWS, _mm512_shuffle_i64x2(lower[0], lower[1], 0xdd));
      _mm512_storeu_si512(out + 2 * LPG_TILE_ROWS, _mm512_shuffle_i64x2(upper[0], upper[1], 0x88));
      _mm512_storeu_si512(out + 3 * LPG_TILE_ROWS, _mm512_shuffle_i64x2(upper[0], upper[1], 0xdd));
    }
  }
}
#elif defined(__AVX2__)
/* The same of 128 bytes at a time, four such numbers of two lanes t by four g. */
static void untangle(int bits, const uint8_t *tile, uint32_t *words) {
  for (int part = 0; part < lpg_lane_words(bits) / 4; part++, tile += 512, words += 8 * LPG_TILE_ROWS) {
    for (int i = 0; i < 4; i++) { /* g from 0 and from 4 on, t = 0 and 1, and 2 and 3 */
      const uint8_t *from = tile + i % 2 * 256 + i / 2 * 32;
      uint32_t *out = words + i / 2 * 2 * LPG_TILE_ROWS + i % 2 * 8;
      __m256i in[4];
#pragma GCC unroll 4
      for (int g = 0; g < 4; g++) in[g] = _mm256_loadu_si256((const __m256i *)(const void *)(from + g * 64));
#pragma GCC unroll 2
      for (int w = 0; w < 2; w++) {
        const __m256i low = w ? _mm256_unpackhi_epi64(in[0], in[1]) : _mm256_unpacklo_epi64(in[0], in[1]);
        const __m256i high = w ? _mm256_unpackhi_epi64(in[2], in[3]) : _mm256_unpacklo_epi64(in[2], in[3]);
        uint32_t *to = out + w * 4 * LPG_TILE_ROWS;
        _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(to + LPG_TILE_ROWS), _mm256_permute2x128_si256(low, high, 0x31));
      }
    }
  }
}
#else
static void untangle(int bits, const uint8_t *tile, uint32_t *words) {
  int row_words = lpg_lane_words(bits) / 2;
  for (int w = 0; w < row_words; w++) {
    for (int lane = 0; lane < LPG_LANES; lane++) {
      int g = lane / 4, t = lane % 4;
      memcpy(words + (w * 4 + t) * LPG_TILE_ROWS + 2 * g, tile + lpg_word_offset(lane, 2 * w), 8);
    }
  }
}
#endif

INLINE vuint extract(const lpg_run *run, int runs, const uint32_t *words, int odd) {
  vuint code = {0};
  for (int i = 0; i < runs; i++) {
    vuint word;
    memcpy(&word, words + run[i].word * 4 * LPG_TILE_ROWS, sizeof word);
    vuint bits = word >> (uint32_t)(run[i].shift + 16 * odd) & ((1u << run[i].bits) - 1u);
    code = i == 0 ? bits : code | bits << (uint32_t)run[i].code_bit;
  }
  return code;
}

/* ---- the call ---- */

static void fill_table(lpgemm_dtype_t type, uint32_t flip, const float *codebook, float *table) {
  uint32_t codes = 1u << lpg_bits(type);
  for (uint32_t i = 0; i < 256; i++) table[i] = lpg_code_value(type, (i ^ flip) & (codes - 1u), codebook);
}

static void fill_tables(const lpg_call *call, unpacker *u) {
  const lpgemm_weight_desc_t *d = &call->problem.weights->desc;
  u->call = call;
  u->packed = call->problem.weights;
  for (int pair = 0; pair < lpg_tile_k(u->packed->bits) / 8; pair++) {
    u->runs[pair] = lpg_code_runs(u->packed->bits, pair, u->run[pair]);
  }
  if (lpg_bytes(call->problem.x_type) == 1) fill_table(call->problem.x_type, 0, NULL, u->x_value);
  if (!lpg_is_integer_kind(d->type)) fill_table(d->type, 0, d->codebook, u->code_value);
  for (int id = 0; id < LPG_SECTIONS; id++) {
    lpgemm_dtype_t type = lpg_section_type(d, (lpg_section_id)id);
    if (lpg_bytes(type) == 1) fill_table(type, 0, NULL, u->section_value[id]);
  }
}

#endif
