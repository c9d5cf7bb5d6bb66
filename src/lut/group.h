/* Scales and zeros of the groups of a row tile, in fp64. Part of lookup.c. */
#ifndef LPG_LUT_GROUP_H
#define LPG_LUT_GROUP_H

#include "build.h"

/* The 16 numbers of a row tile, a vector or several at a time. */
#if defined(__AVX512F__)
enum { V = 8 };
#elif defined(__AVX2__)
enum { V = 4 };
#else
enum { V = 2 };
#endif
typedef double vdouble __attribute__((vector_size(8 * V), may_alias));
typedef int32_t vint __attribute__((vector_size(4 * V), may_alias));
typedef float vfloat __attribute__((vector_size(4 * V), may_alias));

static inline vdouble floats_to_doubles(vfloat v) {
#if defined(__AVX512F__)
  return (vdouble)_mm512_cvtps_pd((__m256)v);
#else
  return __builtin_convertvector(v, vdouble);
#endif
}

static inline vdouble to_doubles(vint v) {
#if defined(__AVX512F__)
  return (vdouble)_mm512_cvtepi32_pd((__m256i)v);
#elif defined(__AVX2__)
  return (vdouble)_mm256_cvtepi32_pd((__m128i)v);
#else
  return __builtin_convertvector(v, vdouble);
#endif
}

/* Where the values of a section are; a type of 0 means nowhere. */
typedef struct section {
  const uint8_t *values;
  lpgemm_dtype_t type;
  int block;      /* bytes of the 16 values of a row tile */
  int64_t padded; /* blocks of a row tile */
} section;

/* The steps [first, end) of a block, all in one group, and its places on the two axes of groups. */
typedef struct segment {
  int first, end;
  int64_t group, super;
} segment;

/* A row tile, and the place of its scales and zeros in their sections, and that of the ones fetched meanwhile. */
typedef struct tile_rows {
  int64_t tile, scales, next;
} tile_rows;

/* Scales and zeros of a matrix. */
typedef struct groups {
  section section[LPG_SECTIONS];
  int has_minimum;
  int one_zero;      /* all weights have the zero below: groups have no zeros and no rests */
  double zero, left; /* the integer next to it, and that less the zero */
} groups;

/* What a group of 16 rows shares, in the order of the sums, fp64: weight = (value - zero) * scale + rest. The zero is
 * an integer, near to the value that makes the weight 0, and the rest is at most scale / 2; but where there is no such
 * value among those of codes, the zero is 0. So sums of x * (value - zero) are exact and those of |x (value - zero)|
 * are at most 2 |x weight|: large activations on weights that are 0 leave nothing behind. */
typedef struct group {
  _Alignas(64) double scale[LPG_TILE_ROWS], zero[LPG_TILE_ROWS], rest[LPG_TILE_ROWS];
} group;

/* The 16 values of a section for a row tile and a group, in the order of the sums. */
INLINE void load_section(const section *from, const tile_rows *rows, int64_t index, double *values) {
  _Alignas(64) float slots[LPG_TILE_ROWS], sorted[LPG_TILE_ROWS];
  const uint8_t *at = from->values + (rows->scales * from->padded + index) * from->block;
  __builtin_prefetch(from->values + (rows->next * from->padded + index) * from->block, 0, 2);
#if defined(__AVX512VBMI__)
  if (from->type == LPGEMM_F16) {
    load_halves(at, values);
    return;
  }
#endif
  if (from->type == LPGEMM_UINT(4)) {
    for (int i = 0; i < LPG_TILE_ROWS; i++) slots[i] = (float)(at[i / 2] >> i % 2 * 4 & 15);
  } else {
    load_floats(from->type, at, 0, LPG_TILE_ROWS, slots);
  }
  sort_slots(slots, sorted);
  for (int i = 0; i < LPG_TILE_ROWS; i += V) {
    *(vdouble *)(values + i) = floats_to_doubles(*(const vfloat *)(sorted + i));
  }
}

/* The products of the values of two sections, which are exact; 1 for sections that are not there. */
INLINE void load_levels(const section *first, const section *second, const tile_rows *rows, const segment *at,
                        double *values) {
  _Alignas(64) double factor[LPG_TILE_ROWS];
  if (first->type) {
    load_section(first, rows, at->group, values);
  } else {
    for (int i = 0; i < LPG_TILE_ROWS; i++) values[i] = 1.0;
  }
  if (!second->type) return;
  load_section(second, rows, at->super, factor);
  for (int i = 0; i < LPG_TILE_ROWS; i++) values[i] *= factor[i];
}

/* The integer next to a zero, if it is one that codes come near to. */
static inline double integer_zero(double zero) {
  const double most = 64.0, rounder = 0x1.8p52; /* adding it leaves an integer */
  double nearest = (zero + rounder) - rounder;
  return fabs(nearest) <= most ? nearest : 0.0;
}

INLINE void load_group(const groups *all, const tile_rows *rows, const segment *at, group *g) {
  const section *from = all->section;
  load_levels(from + LPG_SECTION_SCALES, from + LPG_SECTION_SUPER_SCALES, rows, at, g->scale);
  if (all->one_zero) return;
  _Alignas(64) double zero[LPG_TILE_ROWS];
  load_levels(from + LPG_SECTION_ZEROS, from + LPG_SECTION_SUPER_ZEROS, rows, at, zero);
  for (int i = 0; i < LPG_TILE_ROWS; i++) {
    double s = g->scale[i], z = integer_zero(all->has_minimum ? -zero[i] / s : zero[i]);
    double left = z - zero[i];
    g->zero[i] = z;
    g->rest[i] = all->has_minimum ? fma(z, s, zero[i]) : left != 0.0 ? left * s : 0.0;
  }
}

static groups describe_groups(const lpg_packed *packed, const uint8_t *const *sections) {
  const lpgemm_weight_desc_t *d = &packed->desc;
  groups all = {.has_minimum = d->zero == LPGEMM_ZERO_MINIMUM};
  all.one_zero = d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT;
  all.zero = integer_zero((double)d->zero_constant);
  all.left = all.zero - (double)d->zero_constant;
  for (int i = 0; i < LPG_SECTIONS; i++) {
    lpg_section_id id = (lpg_section_id)i;
    lpgemm_dtype_t type = lpg_section_type(d, id);
    if (type) all.section[i] = (section){sections[i], type, lpg_slot_bytes(type), lpg_section_axis(packed, id)->padded};
  }
  return all;
}

#endif
