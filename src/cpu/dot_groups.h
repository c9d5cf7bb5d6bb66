/* Scales and zeros of the groups of a row tile, for weights that are bytes. Part of dot.c.
 *
 *     weight = (byte - zero) * scale + rest
 *
 * The zero is an integer, one that bytes can be: next to the one that makes the weight 0, so that the two terms do not
 * cancel and the sum of x * (byte - zero) is exact. */
#ifndef LPG_CPU_DOT_GROUPS_H
#define LPG_CPU_DOT_GROUPS_H

#include "dot_bytes.h"
#include "dot_x.h"

/* Of a group, in slot order. */
typedef struct dot_group {
  _Alignas(64) float scale[LPG_TILE_ROWS], rest[LPG_TILE_ROWS];
  _Alignas(64) int32_t less[LPG_TILE_ROWS]; /* the negative of the zero, as 16 bits */
} dot_group;

/* What the groups of a call have in common. */
typedef struct dot_groups {
  const unpacker *from;
  lpg_dot_bytes bytes;
  int one_zero, has_rest;
  int leaves_minimum; /* on the sums as it is, which FAST allows */
  float near, left;   /* the zero of all groups, and the value that a byte of it has: the rest by the scale */
} dot_groups;

/* The integer zero next to a real one. */
INLINE vfloat nearest_zero(vfloat zero) {
  const vfloat rounder = (vfloat){0} + 0x1.8p23f, most = (vfloat){0} + 512.0f; /* adding it leaves an integer */
  vint near = (vint)((zero + rounder) - rounder);
  near &= (vint)(zero >= 0.0f); /* NaN becomes 0 as well */
  return (vfloat)(((vint)most & (zero > most)) | (near & ~(zero > most)));
}

static dot_groups describe_dot_groups(const unpacker *u, const lpg_dot_bytes *bytes) {
  const lpgemm_weight_desc_t *d = &u->packed->desc;
  dot_groups all = {.from = u, .bytes = *bytes};
  const int has_integers = d->zero == LPGEMM_ZERO_PER_GROUP && !lpg_is_real(d->zero_type) && bytes->step == 1.0f;
  const int is_minimum = d->zero == LPGEMM_ZERO_MINIMUM;
  all.one_zero = d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT;
  all.leaves_minimum = is_minimum && u->call->problem.level == LPGEMM_LEVEL_FAST;
  const vfloat zero = (vfloat){0} + ((is_minimum ? 0.0f : d->zero_constant) - bytes->offset) / bytes->step;
  all.near = nearest_zero(zero)[0];
  all.left = (all.near * bytes->step + bytes->offset) - (is_minimum ? 0.0f : d->zero_constant);
  all.has_rest = !(all.one_zero && all.left == 0.0f) && !has_integers;
  return all;
}

/* V values of a section for a row tile and a column, from slot `first` on. */
INLINE vfloat load_slots(const unpacker *u, lpg_section_id id, const uint8_t *at, int first) {
  const lpgemm_dtype_t type = lpg_section_type(&u->packed->desc, id);
  float values[V];
  if (type == LPGEMM_F16) return halves_to_floats((const uint16_t *)(const void *)at + first);
  if (type == LPGEMM_BF16) return brains_to_floats((const uint16_t *)(const void *)at + first);
  if (type == LPGEMM_F32) return load((const float *)(const void *)at + first);
  if (type == LPGEMM_UINT(4)) {
    for (int i = 0; i < V; i++) values[i] = (float)(at[(first + i) / 2] >> i % 2 * 4 & 15);
  } else if (type == LPGEMM_UINT(6) || type == LPGEMM_UINT(8)) {
    for (int i = 0; i < V; i++) values[i] = (float)at[first + i];
  } else if (type == LPGEMM_INT(8)) {
    for (int i = 0; i < V; i++) values[i] = (float)(int8_t)at[first + i];
  } else {
    to_floats(type, at, first, V, u->section_value[id], values);
  }
  return load(values);
}

/* Where the values of a section are for a row tile and a column; NULL: it is not there. */
static const uint8_t *section_at(const unpacker *u, lpg_section_id id, int64_t row_tile, int64_t k) {
  const lpgemm_dtype_t type = lpg_section_type(&u->packed->desc, id);
  if (!type) return NULL;
  const lpg_axis *axis = lpg_section_axis(u->packed, id);
  return u->call->section[id] +
         (row_tile / u->packed->tiles_a_scale * axis->padded + k / axis->k) * lpg_slot_bytes(type);
}

/* All bits where a number is neither 0 nor of a magnitude that fp32 is good for. */
INLINE vint is_bad(vfloat v) {
  const vint low = (vint){0} + (int32_t)0x21800000, high = (vint){0} + (int32_t)0x5d800000; /* 2^-60, 2^60 */
  const vint magnitude = (vint)v & 0x7fffffff;
  return (magnitude != 0) & ((magnitude < low) | (magnitude > high));
}

/* Those of the group of column k. What is returned has bits set if fp32 may not hold them, or what becomes of them. */
INLINE vint load_dot_group(const dot_groups *all, int64_t row_tile, int64_t k, dot_group *g) {
  const unpacker *u = all->from;
  const int is_minimum = u->packed->desc.zero == LPGEMM_ZERO_MINIMUM;
  const float step = all->bytes.step, offset = all->bytes.offset;
  const uint8_t *scales = section_at(u, LPG_SECTION_SCALES, row_tile, k);
  const uint8_t *supers = section_at(u, LPG_SECTION_SUPER_SCALES, row_tile, k);
  const uint8_t *zeros = all->one_zero ? NULL : section_at(u, LPG_SECTION_ZEROS, row_tile, k);
  const uint8_t *super_zeros = section_at(u, LPG_SECTION_SUPER_ZEROS, row_tile, k);
  vint bad = {0};
#pragma GCC unroll 4
  for (int first = 0; first < LPG_TILE_ROWS; first += V) {
    vfloat scale = (vfloat){0} + 1.0f, near = (vfloat){0} + all->near, rest;
    if (scales) scale = load_slots(u, LPG_SECTION_SCALES, scales, first);
    if (supers) scale *= load_slots(u, LPG_SECTION_SUPER_SCALES, supers, first);
    bad |= is_bad(scale);
    if (all->one_zero) {
      rest = scale * all->left;
    } else {
      vfloat zero = load_slots(u, LPG_SECTION_ZEROS, zeros, first);
      if (super_zeros) zero *= load_slots(u, LPG_SECTION_SUPER_ZEROS, super_zeros, first);
      bad |= is_bad(zero);
      if (!all->leaves_minimum) near = nearest_zero(((is_minimum ? -zero / scale : zero) - offset) * (1.0f / step));
      const vfloat value = near * step + offset; /* exact */
      rest = is_minimum ? multiply_add(value, scale, zero) : (value - zero) * scale;
    }
    store(g->scale + first, scale * step);
    store(g->rest + first, rest);
    const vint less = -__builtin_convertvector(near, vint) & 0xffff;
    memcpy(g->less + first, &less, sizeof less);
  }
  return bad;
}

#endif
