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

enum { LPG_DOT_GROUPS = LPG_DOT_K / LPG_STEP_K }; /* of a chunk, at most */

/* Of a group, in slot order. */
typedef struct dot_group {
  _Alignas(64) float scale[LPG_TILE_ROWS], rest[LPG_TILE_ROWS];
  _Alignas(64) int32_t less[LPG_TILE_ROWS]; /* the negative of the zero, as 16 bits; or two codes of minima */
} dot_group;

/* Values or codes of a section for the groups of a chunk. */
typedef float dot_values[LPG_DOT_GROUPS][LPG_TILE_ROWS];
typedef uint32_t dot_codes[LPG_DOT_GROUPS][LPG_TILE_ROWS];

/* What the groups of a call have in common. */
typedef struct dot_groups {
  const unpacker *from;
  lpg_dot_bytes bytes;
  lpgemm_dtype_t type[LPG_SECTIONS]; /* of the values of each section, bytes of 16, and of all of a row tile */
  int slot_bytes[LPG_SECTIONS];
  int64_t tile_bytes[LPG_SECTIONS];
  int folds;          /* bytes are multiplied by the codes of their scales: see may_fold() */
  int one_zero;       /* all weights have one */
  int leaves_minimum; /* on the sums as it is, which FAST allows: the zero of all is that of the bytes */
  int has_rest, may_be_bad;
  int center;       /* what is taken off bytes before they are multiplied: 0, or 128 */
  float near, left; /* the zero of all groups, and the value that a byte of it has: the rest by the scale */
} dot_groups;

/* Which groups the steps of 16 columns of a chunk are of, counted from those of its first column. */
typedef struct dot_pattern {
  int groups, supers;
  uint8_t group_of[LPG_DOT_GROUPS], super_of_group[LPG_DOT_GROUPS], super_of[LPG_DOT_GROUPS];
} dot_pattern;

/* K is so small that 32 bits hold it: their division is fast. */
INLINE int64_t index_on(const lpg_axis *axis, int64_t k) {
  return axis->count == 1 ? 0 : (int64_t)((uint32_t)k / (uint32_t)axis->k);
}

static dot_pattern find_pattern(const lpg_packed *packed, int64_t k, int columns) {
  dot_pattern p = {0};
  const int64_t group = index_on(&packed->group, k), super = index_on(&packed->super, k);
  for (int step = 0; step < columns / LPG_STEP_K; step++) {
    const int64_t at = k + step * LPG_STEP_K;
    p.group_of[step] = (uint8_t)(index_on(&packed->group, at) - group);
    p.super_of[step] = (uint8_t)(index_on(&packed->super, at) - super);
    p.super_of_group[p.group_of[step]] = p.super_of[step];
    p.groups = p.group_of[step] + 1;
    p.supers = p.super_of[step] + 1;
  }
  return p;
}

/* Whether all whole chunks have the pattern of the first one. */
static int has_pattern(const lpg_axis *axis) {
  return axis->count == 1 || LPG_DOT_K % axis->k == 0 || axis->k % LPG_DOT_K == 0;
}

/* The integer zero next to a real one. */
INLINE vfloat nearest_zero(vfloat zero) {
  const vfloat rounder = (vfloat){0} + 0x1.8p23f, most = (vfloat){0} + 512.0f; /* adding it leaves an integer */
  vint near = (vint)((zero + rounder) - rounder);
  near &= (vint)(zero >= 0.0f); /* NaN becomes 0 as well */
  return (vfloat)(((vint)most & (zero > most)) | (near & ~(zero > most)));
}

/* Numbers that are 0 or well within fp32, and so are products of two; NaN and infinities stay what they are. */
static int is_narrow(lpgemm_dtype_t type) {
  return type == 0 || type == LPGEMM_F16 || type == LPGEMM_E4M3 || type == LPGEMM_U16 || lpg_is_integer_kind(type);
}

static int largest_folded(const lpg_packed *packed) {
  return ((1 << packed->bits) - 1) * ((1 << lpg_bits(packed->desc.scale_type)) - 1);
}

/* Codes of two levels that are so small that a byte holds a code times that of its scale: groups of 16 then differ by
 * that alone, and bytes have the upper scale. Minima must have two levels as well, and those of 32 columns one upper.
 */
static int may_fold(const dot_groups *all) {
  const lpg_packed *packed = all->from->packed;
  const lpgemm_weight_desc_t *d = &packed->desc;
  if (lpg_kind(d->type) != LPGEMM_KIND_UINT || !d->super_scale_type || largest_folded(packed) > 255) return 0;
  if (lpg_kind(d->scale_type) != LPGEMM_KIND_UINT || (packed->super.count > 1 && packed->super.k % 32 != 0)) return 0;
  if (d->zero == LPGEMM_ZERO_NONE) return 1;
  return all->leaves_minimum && d->super_zero_type && lpg_kind(d->zero_type) == LPGEMM_KIND_UINT;
}

/* may_center: bytes of X are not below -127. */
static dot_groups describe_dot_groups(const unpacker *u, const lpg_dot_bytes *bytes, int may_center) {
  const lpgemm_weight_desc_t *d = &u->packed->desc;
  dot_groups all = {.from = u, .bytes = *bytes};
  const int has_integers = d->zero == LPGEMM_ZERO_PER_GROUP && !lpg_is_real(d->zero_type) &&
                           lpg_is_integer_kind(d->type) && bytes->step == 1.0f; /* each is a byte: no rest */
  const int is_minimum = d->zero == LPGEMM_ZERO_MINIMUM;
  all.one_zero = d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT;
  all.leaves_minimum = is_minimum && u->call->problem.level == LPGEMM_LEVEL_FAST;
  const vfloat zero = (vfloat){0} + ((is_minimum ? 0.0f : d->zero_constant) - bytes->offset) / bytes->step;
  all.near = nearest_zero(zero)[0];
  all.left = (all.near * bytes->step + bytes->offset) - (is_minimum ? 0.0f : d->zero_constant);
  all.has_rest = !(all.one_zero && all.left == 0.0f) && !has_integers;
  for (int id = 0; id < LPG_SECTIONS; id++) {
    all.type[id] = lpg_section_type(d, (lpg_section_id)id);
    all.may_be_bad |= !is_narrow(all.type[id]);
    if (!all.type[id]) continue;
    all.slot_bytes[id] = lpg_slot_bytes(all.type[id]);
    all.tile_bytes[id] = lpg_section_axis(u->packed, (lpg_section_id)id)->padded * all.slot_bytes[id];
  }
  all.folds = may_fold(&all);
  while (all.folds && largest_folded(u->packed) >> all.bytes.bits) all.bytes.bits++;
  if (LPG_DOT_CENTERS && may_center && all.bytes.bits == 8 && !all.folds) {
    all.center = 128;
    all.bytes.bits = LPG_DOT_CENTERED;
  }
  return all;
}

/* Where the values of the groups of a row tile begin. */
typedef struct dot_sections {
  const uint8_t *scales, *supers, *zeros, *super_zeros; /* NULL: there are none */
} dot_sections;

static const uint8_t *section_of(const dot_groups *all, lpg_section_id id, int64_t scale_tile) {
  return all->type[id] ? all->from->call->section[id] + scale_tile * all->tile_bytes[id] : NULL;
}

static dot_sections dot_sections_of(const dot_groups *all, int64_t row_tile) {
  const unpacker *u = all->from;
  const int64_t tile = u->packed->tiles_a_scale == 1 ? row_tile : row_tile / u->packed->tiles_a_scale;
  dot_sections s = {.scales = section_of(all, LPG_SECTION_SCALES, tile),
                    .supers = section_of(all, LPG_SECTION_SUPER_SCALES, tile)};
  if (!all->one_zero) {
    s.zeros = section_of(all, LPG_SECTION_ZEROS, tile);
    s.super_zeros = section_of(all, LPG_SECTION_SUPER_ZEROS, tile);
  }
  return s;
}

/* The values of `count` groups, from one on; one loop for each type. */
INLINE void load_run(lpgemm_dtype_t type, const uint8_t *at, int bytes, int count, const float *table,
                     dot_values values) {
  for (int i = 0; i < count; i++, at += bytes) {
#pragma GCC unroll 4
    for (int first = 0; first < LPG_TILE_ROWS; first += V) {
      store(values[i] + first, load_slots(type, at, first, table));
    }
  }
}

static void load_values(const dot_groups *all, lpg_section_id id, const uint8_t *section, int64_t group, int count,
                        dot_values values) {
  const lpgemm_dtype_t type = all->type[id];
  const int bytes = all->slot_bytes[id];
  const uint8_t *at = section + group * bytes;
  const float *table = all->from->section_value[id];
  switch (type) {
    case LPGEMM_F16: load_run(LPGEMM_F16, at, bytes, count, table, values); break;
    case LPGEMM_UINT(6): load_run(LPGEMM_UINT(6), at, bytes, count, table, values); break;
    case LPGEMM_UINT(4): load_run(LPGEMM_UINT(4), at, bytes, count, table, values); break;
    case LPGEMM_INT(8): load_run(LPGEMM_INT(8), at, bytes, count, table, values); break;
    case LPGEMM_E8M0: load_run(LPGEMM_E8M0, at, bytes, count, table, values); break;
    default: load_run(type, at, bytes, count, table, values); break;
  }
}

/* All bits where a number is neither 0 nor of a magnitude that fp32 is good for. */
INLINE vint is_bad(vfloat v) {
  const vint low = (vint){0} + (int32_t)0x21800000, high = (vint){0} + (int32_t)0x5d800000; /* 2^-60, 2^60 */
  const vint magnitude = (vint)v & 0x7fffffff;
  return (magnitude != 0) & ((magnitude < low) | (magnitude > high));
}

/* Where the values of a group are; NULL: there are none. */
typedef struct dot_numbers {
  const float *scale, *super, *zero, *super_zero;
} dot_numbers;

/* What becomes of them. What is returned has bits set if fp32 may not hold it. */
INLINE vint make_dot_group(const dot_groups *all, const dot_numbers *from, dot_group *g) {
  const unpacker *u = all->from;
  const int is_minimum = u->packed->desc.zero == LPGEMM_ZERO_MINIMUM;
  const float step = all->bytes.step, offset = all->bytes.offset;
  vint bad = {0};
#pragma GCC unroll 4
  for (int first = 0; first < LPG_TILE_ROWS; first += V) {
    vfloat scale = (vfloat){0} + 1.0f;
    if (from->scale) scale = load(from->scale + first);
    if (from->super) scale *= load(from->super + first);
    if (all->may_be_bad) bad |= is_bad(scale);
    store(g->scale + first, scale * step);
    if (all->one_zero) {
      if (all->has_rest) store(g->rest + first, scale * all->left);
      continue;
    }
    vfloat zero = load(from->zero + first);
    if (from->super_zero) zero *= load(from->super_zero + first);
    if (all->may_be_bad) bad |= is_bad(zero);
    if (all->leaves_minimum) {
      store(g->rest + first, multiply_add((vfloat){0} + all->left, scale, zero));
      continue;
    }
    const vfloat near = nearest_zero(((is_minimum ? -zero / scale : zero) - offset) * (1.0f / step));
    const vfloat value = near * step + offset; /* exact */
    store(g->rest + first, is_minimum ? multiply_add(value, scale, zero) : (value - zero) * scale);
    const vint less = (all->center - __builtin_convertvector(near, vint)) & 0xffff;
    memcpy(g->less + first, &less, sizeof less);
  }
  return bad;
}

/* ---- bytes that are multiplied by the codes of their scales ---- */

INLINE void load_code_run(int is_nibble, const uint8_t *at, int bytes, int count, uint32_t factor, dot_codes codes) {
  for (int i = 0; i < count; i++, at += bytes) {
#pragma GCC unroll 4
    for (int first = 0; first < LPG_TILE_ROWS; first += V) {
      const vuint words = (is_nibble ? nibbles_to_words(at + first / 2) : bytes_to_words(at + first)) * factor;
      memcpy(codes[i] + first, &words, sizeof words);
    }
  }
}

/* Codes of UINT(4), (6) or (8) of `count` groups, from one on, times a factor. */
static void load_codes(const dot_groups *all, lpg_section_id id, const uint8_t *section, int64_t group, int count,
                       uint32_t factor, dot_codes codes) {
  const int bytes = all->slot_bytes[id];
  const uint8_t *at = section + group * bytes;
  if (all->type[id] == LPGEMM_UINT(4)) {
    load_code_run(1, at, bytes, count, factor, codes);
  } else {
    load_code_run(0, at, bytes, count, factor, codes);
  }
}

/* From the codes of groups to those of the steps of 16 columns of so many units, in place. */
INLINE void spread_codes(const dot_pattern *p, int units, dot_codes codes) {
  for (int step = 2 * units - 1; p->groups < 2 * units && step > 0; step--) {
    memcpy(codes[step], codes[p->group_of[step]], sizeof codes[0]); /* of one no later */
  }
}

/* What is left for the bytes of two steps: the upper scales, and those of minima with their codes; NULL: there are
 * none. */
INLINE void make_folded_group(const float *scale, const float *rest, const uint32_t (*codes)[LPG_TILE_ROWS],
                              dot_group *g) {
#pragma GCC unroll 4
  for (int first = 0; first < LPG_TILE_ROWS; first += V) {
    store(g->scale + first, load(scale + first));
    if (!rest) continue;
    store(g->rest + first, load(rest + first));
    const vuint both = load_words(codes[0] + first) | load_words(codes[1] + first) << 16;
    memcpy(g->less + first, &both, sizeof both);
  }
}

#endif
