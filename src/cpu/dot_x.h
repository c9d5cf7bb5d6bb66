/* Rows of X as signed bytes. Part of dot.c.
 *
 * X of 8 bits is taken as it lies. Other X, for every 32 columns,
 *
 *     FAST     is rounded to multiples of a 127th of their largest magnitude: an element moves by at most half of that
 *     EXACT    becomes three digits of base 256, of a unit that is a power of two. Elements of which that would lose
 *              too much are multiplied apart, as they are. */
#ifndef LPG_CPU_DOT_X_H
#define LPG_CPU_DOT_X_H

#include "dot_bytes.h"
#include "dot_panel.h"

enum { LPG_DOT_BLOCK = 32 };

/* What sums of the bytes of a unit are: as 16 bits, for zeros of groups; times the negative of the one zero; or of
 * 16 columns each, as two of 16 bits, for minima of groups. */
typedef enum dot_sums { SUMS, SUMS_TIMES_ZERO, PAIRS_OF_SUMS } dot_sums;

/* Elements of a row that bytes do not hold: none in a chunk; some, each of them multiplied apart; or the chunk is not
 * finite, or beyond what fp32 scales well, and multiplied in fp64. */
typedef enum dot_kept { KEPT_NONE, KEPT_SOME, KEPT_ALL } dot_kept;

/* Where some rows of X are. A line is a byte for every column: a row has one, or three for its digits, the upper one
 * first. What is made of X alone serves every matrix (lpg_x_form); sums are as the weights of the call want them. */
typedef struct dot_x {
  int64_t columns, blocks, units, chunks; /* of a row, filled up to whole ones */
  int64_t stride; /* bytes from line to line, so that lines do not fall into the same sets of a cache */
  int lines;      /* of a row */
  /* of X alone: */
  int8_t *bytes;   /* [rows][lines][stride], in the order of a panel */
  float *step;     /* [rows][blocks]: what a byte of the last line counts */
  int32_t *halves; /* [rows][lines][blocks]: sums of 16 bytes each, as two of 16 bits */
  uint32_t *some;  /* [rows][blocks]: bits of elements that are multiplied apart, in the order of bytes */
  uint8_t *kept;   /* [rows][chunks] */
  float loses;     /* what elements may lose of themselves */
  /* for the weights: */
  int32_t *sum; /* [rows][lines][units] of bytes: as 16 bits, or times the negative of the one zero */
  float *all;   /* [rows][units] of X as bytes have it */
  dot_sums sums;
  int32_t less; /* the negative of the one zero */
} dot_x;

/* Lines of a row: of bytes as they lie or FAST rounds them, or digits. */
static int lines_of(const lpg_problem *problem) {
  return lpg_is_bytes(problem->x_type) || problem->level == LPGEMM_LEVEL_FAST ? 1 : 3;
}

/* Bytes of memory for a row: of what is made of X alone, in a multiple of 4, and of sums. */
static int64_t dot_made_bytes(const dot_x *x) {
  return lpg_round_up(x->lines * (x->stride + 4 * x->blocks) + 8 * x->blocks + x->chunks, 4);
}
static int64_t dot_sums_bytes(const dot_x *x) { return 4 * (x->lines + 1) * x->units; }

/* Both, which is at least what a row takes. */
static int64_t dot_row_bytes(const dot_x *x) { return dot_made_bytes(x) + dot_sums_bytes(x); }

static dot_x shape_of_x(int64_t k, int unit, int lines) {
  const int64_t columns = lpg_round_up(k, LPG_DOT_BLOCK);
  return (dot_x){.columns = columns,
                 .stride = lpg_round_up(columns, 128) + 64,
                 .lines = lines,
                 .blocks = columns / LPG_DOT_BLOCK,
                 .units = columns / unit,
                 .chunks = lpg_ceil_div(columns, LPG_DOT_K),
                 .loses = fminf((float)k * 0x1p-25f, 0x1p-14f)}; /* a quarter of the bound of EXACT */
}

/* Row `first` of `rows` rows that are, or will be, at `memory`. */
static void place_made(dot_x *x, int64_t rows, int64_t first, void *memory) {
  int8_t *bytes = memory;
  float *step = (float *)(void *)(bytes + rows * x->lines * x->stride);
  int32_t *halves = (int32_t *)(void *)(step + rows * x->blocks);
  uint32_t *some = (uint32_t *)(void *)(halves + rows * x->lines * x->blocks);
  uint8_t *kept = (uint8_t *)(some + rows * x->blocks);
  x->bytes = bytes + first * x->lines * x->stride;
  x->step = step + first * x->blocks;
  x->halves = halves + first * x->lines * x->blocks;
  x->some = some + first * x->blocks;
  x->kept = kept + first * x->chunks;
}

static void place_sums(dot_x *x, int64_t rows, void *memory) {
  x->sum = memory;
  x->all = (float *)(void *)(x->sum + rows * x->lines * x->units);
}

/* Column of a block whose byte is at a place of it. */
INLINE int column_of_block(int place) { return place / LPG_STEP_K * LPG_STEP_K + dot_column(place % LPG_STEP_K); }

/* The bits of the largest magnitude; bits of magnitudes are ordered as they are, NaN above all. */
INLINE uint32_t largest_bits(const float *x) {
  uint32_t most = 0;
  for (int i = 0; i < LPG_DOT_BLOCK; i++) {
    const uint32_t magnitude = lpg_f32_bits(x[i]) & 0x7fffffffu;
    most = magnitude > most ? magnitude : most;
  }
  return most;
}

/* A line's numbers of a block as bytes in the order of a panel, in which the halves of a step of 16 columns take turns
 * (dot_column()), and the sums of its steps. */
#if defined(__AVX2__)
INLINE void put_line(const int32_t *numbers, int8_t *bytes, int32_t *halves) {
  const __m256i *n = (const __m256i *)(const void *)numbers, low = _mm256_set1_epi32(255),
                bias = _mm256_set1_epi8(-128);
  __m256i pairs[2]; /* of columns i and i + 8 of a step, in 32 bits */
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    const __m256i first = _mm256_and_si256(_mm256_loadu_si256(n + 2 * i), low);
    const __m256i second = _mm256_and_si256(_mm256_loadu_si256(n + 2 * i + 1), low);
    pairs[i] = _mm256_or_si256(first, _mm256_slli_epi32(second, 8));
  }
  const __m256i all = _mm256_permute4x64_epi64(_mm256_packus_epi32(pairs[0], pairs[1]), 0xd8);
  _mm256_storeu_si256((__m256i *)(void *)bytes, all);
  const __m256i eights = _mm256_sad_epu8(_mm256_xor_si256(all, bias), _mm256_setzero_si256());
  const __m256i steps = _mm256_add_epi64(eights, _mm256_shuffle_epi32(eights, 0x4e));
  const int32_t sums[2] = {_mm256_extract_epi32(steps, 0) - 128 * LPG_STEP_K,
                           _mm256_extract_epi32(steps, 4) - 128 * LPG_STEP_K};
  *halves = (sums[0] & 0xffff) | (int32_t)((uint32_t)sums[1] << 16);
}
#else
INLINE void put_line(const int32_t *numbers, int8_t *bytes, int32_t *halves) {
  int8_t narrow[LPG_DOT_BLOCK];
  int32_t sums[2] = {0, 0};
  for (int i = 0; i < LPG_DOT_BLOCK; i++) narrow[i] = (int8_t)numbers[i];
  for (int i = 0; i < LPG_STEP_K; i++) sums[0] += numbers[i];
  for (int i = LPG_STEP_K; i < LPG_DOT_BLOCK; i++) sums[1] += numbers[i];
  *halves = (sums[0] & 0xffff) | (int32_t)((uint32_t)sums[1] << 16);
#pragma GCC unroll 2
  for (int step = 0; step < LPG_DOT_BLOCK; step += LPG_STEP_K) {
    for (int i = 0; i < LPG_STEP_K / 2; i++) {
      bytes[step + 2 * i] = narrow[step + i];
      bytes[step + 2 * i + 1] = narrow[step + LPG_STEP_K / 2 + i];
    }
  }
}
#endif

/* A block as bytes by a multiple of it that is made of integers, of magnitudes up to 127 after rounding. */
static void round_bytes(const float *x, float inverse, int8_t *bytes, int32_t *halves) {
  static const float rounder = 0x1.8p23f; /* adding it leaves an integer */
  int32_t rounded[LPG_DOT_BLOCK];
  for (int i = 0; i < LPG_DOT_BLOCK; i++) rounded[i] = (int32_t)((x[i] * inverse + rounder) - rounder);
  put_line(rounded, bytes, halves);
}

/* A block as three digits whose largest magnitude has the bits `most`. Returns what the last digit counts: the least
 * power of two of which three signed bytes hold the largest magnitude. */
static float round_digits(const dot_x *x, const float *values, uint32_t most, int8_t *bytes, int32_t *halves,
                          uint32_t *some) {
  enum { MOST = 0x7f7f7f, BIAS = 0x808080 }; /* 127 in all digits; it makes them unsigned */
  const uint32_t exponent = (most >> 23) - 22u + (((most & 0x7fffffu) | 0x800000u) >= 2u * MOST + 1u);
  const float unit = lpg_bits_f32(exponent << 23), inverse = lpg_bits_f32((254u - exponent) << 23);
  int32_t digits[LPG_DOT_BLOCK], lost[LPG_DOT_BLOCK], any = 0;
  for (int i = 0; i < LPG_DOT_BLOCK; i++) {
    const float nearest = rintf(values[i] * inverse);
    lost[i] = fabsf(values[i] - nearest * unit) > x->loses * fabsf(values[i]);
    digits[i] = (lost[i] ? 0 : (int32_t)nearest) + BIAS;
  }
  for (int i = 0; i < LPG_DOT_BLOCK; i++) any |= lost[i];
  for (int i = 0; any && i < LPG_DOT_BLOCK; i++) *some |= (uint32_t)lost[column_of_block(i)] << i;
#pragma GCC unroll 3
  for (int d = 0; d < 3; d++) {
    int32_t numbers[LPG_DOT_BLOCK];
    for (int i = 0; i < LPG_DOT_BLOCK; i++) numbers[i] = (digits[i] >> (16 - 8 * d) & 255) - 128;
    put_line(numbers, bytes + d * x->stride, halves + d * x->blocks);
  }
  return unit;
}

/* A block of row `to`; its 32 values. */
static void make_block(const dot_x *x, int64_t to, int64_t block, const float *values, int is_byte) {
  int8_t *bytes = x->bytes + to * x->lines * x->stride + block * LPG_DOT_BLOCK;
  int32_t *halves = x->halves + to * x->lines * x->blocks + block;
  float *step = x->step + to * x->blocks + block;
  uint32_t *some = x->some + to * x->blocks + block;
  uint8_t *kept = x->kept + to * x->chunks + block * LPG_DOT_BLOCK / LPG_DOT_K;
  const uint32_t most = is_byte ? 0 : largest_bits(values);
  const float largest = lpg_bits_f32(most);
  *some = 0;
  *step = 1.0f;
  if (is_byte) {
    round_bytes(values, 1.0f, bytes, halves);
  } else if (most == 0 || !(largest >= 0x1p-40f && largest <= 0x1p40f)) { /* NaN as well */
    for (int line = 0; line < x->lines; line++) {
      memset(bytes + line * x->stride, 0, LPG_DOT_BLOCK);
      halves[line * x->blocks] = 0;
    }
    if (most != 0) *kept = KEPT_ALL;
  } else if (x->lines == 1) {
    *step = largest * (1.0f / 127.0f);
    round_bytes(values, 127.0f / largest, bytes, halves);
  } else {
    *step = round_digits(x, values, most, bytes, halves, some);
    if (*some && *kept == KEPT_NONE) *kept = KEPT_SOME;
  }
}

/* Row `from` of X, which is row `to` of those in memory, a chunk after the other. */
static void make_bytes(const unpacker *u, int64_t from, const dot_x *x, int64_t to) {
  const lpg_call *call = u->call;
  const int is_byte = lpg_is_bytes(call->problem.x_type);
  float values[LPG_DOT_K];
  memset(x->kept + to * x->chunks, KEPT_NONE, (size_t)x->chunks);
  for (int64_t first = 0; first < x->columns; first += LPG_DOT_K) {
    const int64_t left = u->packed->desc.k - first, columns = left < LPG_DOT_K ? left : LPG_DOT_K;
    if (columns < LPG_DOT_K) memset(values, 0, sizeof values);
    to_floats(call->problem.x_type, call->x, from * call->ldx + first, columns, u->x_value, values);
    for (int64_t i = 0; i < columns; i += LPG_DOT_BLOCK) {
      make_block(x, to, (first + i) / LPG_DOT_BLOCK, values + i, is_byte);
    }
  }
}

/* Sums of row `to`, a unit at a time: of a block, or of half of one. */
static void make_sums(const dot_x *x, int64_t to) {
  const int is_block = x->units == x->blocks;
  for (int64_t i = 0; i < x->units; i++) {
    const int64_t block = is_block ? i : i / 2;
    int32_t of_row = 0;
    for (int64_t line = to * x->lines; line < (to + 1) * x->lines; line++) {
      const int32_t halves = x->halves[line * x->blocks + block];
      const int32_t first = (int16_t)halves, second = halves >> 16;
      const int32_t sum = is_block ? first + second : i % 2 ? second : first;
      x->sum[line * x->units + i] = x->sums == SUMS ? sum & 0xffff : x->sums == PAIRS_OF_SUMS ? halves : sum * x->less;
      of_row = of_row * 256 + sum;
    }
    x->all[to * x->units + i] = (float)of_row * x->step[to * x->blocks + block];
  }
}

#endif
