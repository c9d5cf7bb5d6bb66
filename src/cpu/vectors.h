/* Vectors of fp32 numbers, as wide as the instruction set that the file is compiled for. Part of blocked.c. */
#ifndef LPG_CPU_VECTORS_H
#define LPG_CPU_VECTORS_H

#if defined(__F16C__)
#include <immintrin.h>
#endif
#include <stdint.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed between inlined functions only */

#if defined(__AVX512F__)
enum { V = 16 };
#elif defined(__AVX2__)
enum { V = 8 };
#else
enum { V = 4 };
#endif

#if defined(__FMA__) || defined(__aarch64__)
enum { FUSED = 1 }; /* the machine has a multiply-add that is rounded once */
#else
enum { FUSED = 0 };
#endif

typedef float vfloat __attribute__((vector_size(4 * V)));
typedef int32_t vint __attribute__((vector_size(4 * V)));
typedef uint32_t vuint __attribute__((vector_size(4 * V)));
typedef uint16_t vhalf __attribute__((vector_size(2 * V)));
typedef float vfew __attribute__((vector_size(2 * V))); /* as many as a vector has fp64 numbers */
typedef double vdouble __attribute__((vector_size(4 * V)));

#define INLINE static inline __attribute__((always_inline))

INLINE vfloat load(const float *p) {
  vfloat v;
  memcpy(&v, p, sizeof v);
  return v;
}

INLINE void store(float *p, vfloat v) { memcpy(p, &v, sizeof v); }

/* a * b + c, rounded once whatever the compiler's options: the loop becomes one instruction. */
INLINE vfloat multiply_add(vfloat a, vfloat b, vfloat c) {
  vfloat sum;
  for (int i = 0; i < V; i++) sum[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return sum;
}

/* sums += v * factor, in fp64. */
INLINE void add(vfloat v, const double *factor, double *sums) {
  enum { FEW = V / 2 };
  vfew half[2];
  memcpy(half, &v, sizeof v);
  for (int i = 0; i < 2; i++) {
    vdouble sum, factors;
    memcpy(&sum, sums + i * FEW, sizeof sum);
    memcpy(&factors, factor + i * FEW, sizeof factors);
    sum += __builtin_convertvector(half[i], vdouble) * factors;
    memcpy(sums + i * FEW, &sum, sizeof sum);
  }
}

/* As lpg_f16_to_f32(). */
#if defined(__AVX512F__)
INLINE vfloat halves_to_floats(const uint16_t *p) {
  return (vfloat)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
#elif defined(__F16C__)
INLINE vfloat halves_to_floats(const uint16_t *p) {
  return (vfloat)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
#else
INLINE vfloat halves_to_floats(const uint16_t *p) {
  vhalf half;
  memcpy(&half, p, sizeof half);
  vuint h = __builtin_convertvector(half, vuint);
  vuint magnitude = h & 0x7fffu, bias = (vuint){0} + (112u << 23);
  vfloat subnormal = __builtin_convertvector((vint)magnitude, vfloat) * 5.9604644775390625e-8f;
  vuint is_special = (vuint)((vint)magnitude >= 0x7c00), is_subnormal = (vuint)((vint)magnitude < 0x0400);
  vuint normal = (magnitude << 13) + bias + (is_special & bias);
  vuint bits = (is_subnormal & (vuint)subnormal) | (~is_subnormal & normal) | (h & 0x8000u) << 16;
  return (vfloat)bits;
}
#endif

/* Wider numbers: gcc 12 would convert such vectors one number at a time. */
#if defined(__AVX512F__)
INLINE vuint wide_bytes(__m128i bytes) { return (vuint)_mm512_cvtepu8_epi32(bytes); }
INLINE vuint bytes_to_words(const uint8_t *p) { return wide_bytes(_mm_loadu_si128((const __m128i *)(const void *)p)); }
INLINE vuint halves_to_words(const uint16_t *p) {
  return (vuint)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
#elif defined(__AVX2__)
INLINE vuint wide_bytes(__m128i bytes) { return (vuint)_mm256_cvtepu8_epi32(bytes); }
INLINE vuint bytes_to_words(const uint8_t *p) { return wide_bytes(_mm_loadl_epi64((const __m128i *)(const void *)p)); }
INLINE vuint halves_to_words(const uint16_t *p) {
  return (vuint)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
#else
INLINE vuint bytes_to_words(const uint8_t *p) {
  uint32_t words[V];
  vuint v;
  for (int i = 0; i < V; i++) words[i] = p[i];
  memcpy(&v, words, sizeof v);
  return v;
}
INLINE vuint halves_to_words(const uint16_t *p) {
  vhalf half;
  memcpy(&half, p, sizeof half);
  return __builtin_convertvector(half, vuint);
}
#endif

INLINE vfloat brains_to_floats(const uint16_t *p) { return (vfloat)(halves_to_words(p) << 16); }

INLINE vfloat words_to_floats(vuint words) { return __builtin_convertvector((vint)words, vfloat); }

/* e4m3 in the lower bytes of words. */
INLINE vfloat eights_to_floats(vuint code) {
  const vuint magnitude = code & 0x7fu, is_subnormal = (vuint)(magnitude < 8u), is_nan = (vuint)(magnitude == 0x7fu);
  const vfloat subnormal = words_to_floats(magnitude) * 0x1p-9f;
  const vuint normal = (magnitude << 20) + (120u << 23);
  return (vfloat)((is_subnormal & (vuint)subnormal) | (~is_subnormal & normal) | (is_nan & 0x7fc00000u) |
                  (code & 0x80u) << 24);
}

/* table[index], of up to 16 numbers or of up to 256. */
INLINE vfloat look_up_floats(const float *table, int is_short, vuint index) {
#if defined(__AVX512F__)
  if (is_short) return (vfloat)_mm512_permutexvar_ps((__m512i)index, _mm512_loadu_ps(table));
  return (vfloat)_mm512_i32gather_ps((__m512i)index, table, 4);
#elif defined(__AVX2__)
  if (is_short) { /* bit 3 becomes the sign, which says which half it is */
    const __m256i at = (__m256i)index;
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), at);
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), at);
    return (vfloat)_mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(at, 28)));
  }
  return (vfloat)_mm256_i32gather_ps(table, (__m256i)index, 4);
#else
  uint32_t at[V];
  float value[V];
  (void)is_short;
  memcpy(at, &index, sizeof at);
  for (int i = 0; i < V; i++) value[i] = table[at[i]];
  return load(value);
#endif
}

/* V halves of bytes, the low ones first. */
INLINE vuint nibbles_to_words(const uint8_t *p) {
#if defined(__AVX2__)
  uint64_t bytes = 0;
  memcpy(&bytes, p, V / 2);
  const __m128i both = _mm_cvtsi64_si128((int64_t)bytes), nibble = _mm_set1_epi8(15);
  return wide_bytes(_mm_unpacklo_epi8(_mm_and_si128(both, nibble), _mm_and_si128(_mm_srli_epi16(both, 4), nibble)));
#else
  uint32_t words[V];
  vuint v;
  for (int i = 0; i < V; i++) words[i] = p[i / 2] >> i % 2 * 4 & 15u;
  memcpy(&v, words, sizeof v);
  return v;
#endif
}

#endif
