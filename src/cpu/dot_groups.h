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
  int is_fast, has_rest;
} dot_groups;

static dot_groups describe_dot_groups(const unpacker *u, const lpg_dot_bytes *bytes) {
  const lpgemm_weight_desc_t *d = &u->packed->desc;
  const int is_one = d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT;
  const float zero = (d->zero_constant - bytes->offset) / bytes->step;
  const int is_integer = zero == floorf(zero) && zero >= 0.0f && zero <= 512.0f;
  const int has_integers = d->zero == LPGEMM_ZERO_PER_GROUP && !lpg_is_real(d->zero_type) && bytes->step == 1.0f;
  return (dot_groups){u, *bytes, u->call->problem.level == LPGEMM_LEVEL_FAST,
                      !(is_one && is_integer) && !has_integers};
}

/* Those of the group of column k; 0: fp32 may not hold them, or what becomes of them. */
INLINE int load_dot_group(const dot_groups *all, int64_t row_tile, int64_t k, dot_group *g) {
  static const lpg_magnitudes good = {0x1p-60f, 0x1p60f};
  const unpacker *u = all->from;
  const lpgemm_weight_desc_t *d = &u->packed->desc;
  const float step = all->bytes.step, offset = all->bytes.offset, most = 512.0f;
  const float rounder = 0x1.8p23f; /* adding it leaves an integer */
  float zero[LPG_TILE_ROWS];
  const int is_minimum = d->zero == LPGEMM_ZERO_MINIMUM;
  for (int i = 0; i < LPG_TILE_ROWS; i++) {
    g->scale[i] = 1.0f;
    zero[i] = d->zero_constant;
  }
  if (d->scale_type) section_to_floats(u, LPG_SECTION_SCALES, row_tile, k, g->scale);
  if (d->zero_type) section_to_floats(u, LPG_SECTION_ZEROS, row_tile, k, zero);
  if (!multiply_by_section(u, LPG_SECTION_SUPER_SCALES, row_tile, k, g->scale) ||
      !multiply_by_section(u, LPG_SECTION_SUPER_ZEROS, row_tile, k, zero) || !lpg_is_within(good, g->scale) ||
      !lpg_is_within(good, zero)) {
    return 0;
  }
  for (int i = 0; i < LPG_TILE_ROWS; i++) {
    const float scale = g->scale[i] * step;
    /* Of the byte: where the weight is 0. FAST leaves a minimum on the sums as it is. */
    float exact = is_minimum ? (all->is_fast ? 0.0f : -zero[i] / scale) - offset / step : (zero[i] - offset) / step;
    float near = (exact + rounder) - rounder;
    near = near >= 0.0f ? near : 0.0f; /* NaN too */
    near = near <= most ? near : most;
    const float at_near = near * step + offset; /* the value there: exact */
    g->rest[i] = is_minimum ? __builtin_fmaf(at_near, g->scale[i], zero[i]) : (at_near - zero[i]) * g->scale[i];
    g->scale[i] = scale;
    g->less[i] = -(int32_t)near & 0xffff;
  }
  return 1;
}

#endif
