/* Scales, zeros and the like in their sections, what is derived from them, and the exact value of a weight. For host
 * and device, so that both write the same bytes. */
#ifndef LPG_PACK_SECTIONS_H
#define LPG_PACK_SECTIONS_H

#include "../layouts/packed.h"

/* ---- one number ---- */

/* The largest number that a section may hold; UINT32_MAX if all that its type can hold are legal. */
LPG_BITS_FN uint32_t lpg_largest_number(const lpg_packed *packed, lpg_section_id id) {
  lpgemm_dtype_t type = lpg_section_type(&packed->desc, id);
  if (lpg_kind(type) != LPGEMM_KIND_UINT) return UINT32_MAX;
  int is_zero = id == LPG_SECTION_ZEROS && packed->desc.zero == LPGEMM_ZERO_PER_GROUP; /* GPTQ's reach 2^bits */
  return is_zero ? 1u << packed->bits : (1u << lpg_bits(type)) - 1u;
}

/* The numbers of one row in a section: where the first lies in the blob, and how far it is from one to the next. */
typedef struct lpg_line {
  int64_t offset, stride;
  lpgemm_dtype_t type;
  int bytes; /* of a number; 0 for UINT(4), which takes half of one */
  int shift; /* UINT(4) */
} lpg_line;

LPG_BITS_FN lpg_line lpg_line_of(const lpg_packed *packed, lpg_section_id id, int64_t row) {
  lpg_line line;
  line.type = lpg_section_type(&packed->desc, id);
  line.offset = (int64_t)packed->section[id].offset +
                lpg_value_offset(line.type, lpg_section_axis(packed, id)->padded, lpg_scale_row(packed, row), 0);
  line.stride = lpg_slot_bytes(line.type);
  line.bytes = line.type == LPGEMM_UINT(4) ? 0 : lpg_bytes(line.type);
  line.shift = 4 * (lpg_row_slot((int)(row % LPG_TILE_ROWS)) % 2);
  return line;
}

/* Into a section that was zeroed before. On the device two threads may share the byte of two UINT(4). */
LPG_BITS_FN void lpg_put_number(const lpg_line *line, uint8_t *blob, int64_t index, uint32_t number) {
  uint8_t *at = blob + line->offset + index * line->stride;
  if (line->bytes == 0) {
#ifdef __CUDA_ARCH__
    int in_word = (int)((uintptr_t)at % 4);
    atomicOr((unsigned *)(at - in_word), number << (line->shift + 8 * in_word));
#else
    *at = (uint8_t)(*at | number << line->shift);
#endif
  }
  for (int i = 0; i < line->bytes; i++) at[i] = (uint8_t)(number >> 8 * i);
}

LPG_BITS_FN uint32_t lpg_get_number(const lpg_line *line, const uint8_t *blob, int64_t index) {
  const uint8_t *at = blob + line->offset + index * line->stride;
  switch (line->bytes) {
    case 0: return (uint32_t)*at >> line->shift & 15u;
    case 1: return at[0];
#ifdef __CUDA_ARCH__ /* there blobs are aligned */
    case 2: return *(const uint16_t *)at;
    default: return *(const uint32_t *)at;
#else
    case 2: return (uint32_t)at[0] | (uint32_t)at[1] << 8;
    default: return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
#endif
  }
}

/* The value of a number, exact. */
LPG_BITS_FN float lpg_number_value(lpgemm_dtype_t type, uint32_t number) {
  switch (type) {
    case LPGEMM_F32: return lpg_bits_f32(number);
    case LPGEMM_F16: return lpg_f16_to_f32((uint16_t)number);
    case LPGEMM_BF16: return lpg_bf16_to_f32((uint16_t)number);
    default: return lpg_code_value(type, number, NULL);
  }
}

LPG_BITS_FN float lpg_line_value(const lpg_line *line, const uint8_t *blob, int64_t index) {
  return lpg_number_value(line->type, lpg_get_number(line, blob, index));
}

/* ---- the exact value of a weight ---- */

/* What the weights of one group share. An absent factor is 1. */
typedef struct lpg_group_terms {
  const lpgemm_weight_desc_t *desc;
  float scale, super_scale, zero, super_zero; /* zero: or the minimum */
  float row_scale;
} lpg_group_terms;

LPG_BITS_FN float lpg_term(const lpg_packed *packed, const uint8_t *blob, lpg_section_id id, int64_t row,
                           int64_t column, float absent) {
  if (packed->section[id].bytes == 0) return absent;
  lpg_line line = lpg_line_of(packed, id, row);
  return lpg_line_value(&line, blob, column / lpg_section_axis(packed, id)->k);
}

/* The factor of a row. */
LPG_BITS_FN float lpg_row_scale(const lpg_packed *packed, const uint8_t *blob, int64_t row) {
  float scale = 1.0f;
  if (packed->section[LPG_SECTION_ROW_SCALES].bytes == 0) return scale;
  memcpy(&scale, blob + packed->section[LPG_SECTION_ROW_SCALES].offset + row * 4, sizeof scale);
  return scale;
}

/* Where a stored column lies in the source and in X. */
LPG_BITS_FN int64_t lpg_source_column(const lpg_packed *packed, const uint8_t *blob, int64_t column) {
  int32_t at;
  if (packed->section[LPG_SECTION_COLUMN_ORDER].bytes == 0) return column;
  memcpy(&at, blob + packed->section[LPG_SECTION_COLUMN_ORDER].offset + column * 4, sizeof at);
  return at;
}

LPG_BITS_FN lpg_group_terms lpg_terms_at(const lpg_packed *packed, const uint8_t *blob, int64_t row, int64_t column) {
  lpg_group_terms g;
  g.desc = &packed->desc;
  g.scale = lpg_term(packed, blob, LPG_SECTION_SCALES, row, column, 1.0f);
  g.super_scale = lpg_term(packed, blob, LPG_SECTION_SUPER_SCALES, row, column, 1.0f);
  g.zero = lpg_term(packed, blob, LPG_SECTION_ZEROS, row, column, packed->desc.zero_constant);
  g.super_zero = lpg_term(packed, blob, LPG_SECTION_SUPER_ZEROS, row, column, 1.0f);
  g.row_scale = lpg_row_scale(packed, blob, row);
  return g;
}

/* The exact value of a weight, as an fp64 that rounds to the narrower formats as the exact value does. */
LPG_BITS_FN double lpg_weight_value(const lpg_group_terms *g, uint32_t code) {
  double value = (double)lpg_code_value(g->desc->type, code, g->desc->codebook);
  int minimum = g->desc->zero == LPGEMM_ZERO_MINIMUM;
  lpg_wide w = lpg_wide_add(value, minimum ? 0.0 : -(double)g->zero);
  w = lpg_wide_times(w, g->scale);
  if (g->super_scale != 1.0f) w = lpg_wide_times(w, g->super_scale);
  if (minimum) w = lpg_wide_plus(w, lpg_wide_add((double)g->zero * (double)g->super_zero, 0.0));
  if (g->desc->global_scale != 1.0f) w = lpg_wide_times(w, g->desc->global_scale);
  if (g->row_scale != 1.0f) w = lpg_wide_times(w, g->row_scale);
  return lpg_wide_to_odd(w);
}

/* ---- row exponents ---- */

enum { LPG_MAX_SPAN = 255 };

/* floor(log2(|x|)) of a finite x that is not 0. */
LPG_BITS_FN int lpg_exponent_of(float x) {
  uint32_t magnitude = lpg_f32_bits(x) & 0x7fffffffu;
  if (magnitude >= 0x00800000u) return (int)(magnitude >> 23) - 127;
  int e = -149;
  while (magnitude >>= 1) e++;
  return e;
}

/* What the scales of a row, or of a part of it, have for exponents. */
typedef struct lpg_exponents {
  int low, high; /* low > high: no finite scale but 0 */
  int bad;       /* 1: a scale is infinite or NaN */
} lpg_exponents;

LPG_BITS_FN lpg_exponents lpg_no_exponents(void) {
  lpg_exponents e;
  e.low = INT16_MAX;
  e.high = INT16_MIN;
  e.bad = 0;
  return e;
}

/* Of groups [first, end) of row `row` < n, one by one. */
LPG_BITS_FN void lpg_add_exponents(const lpg_packed *packed, const uint8_t *blob, int64_t row, int64_t first,
                                   int64_t end, lpg_exponents *found) {
  int two_levels = packed->desc.super_scale_type != 0;
  lpg_line scales = lpg_line_of(packed, LPG_SECTION_SCALES, row);
  lpg_line supers = lpg_line_of(packed, LPG_SECTION_SUPER_SCALES, row);
  for (int64_t j = first; j < end; j++) {
    float scale = lpg_line_value(&scales, blob, j);
    if (two_levels) scale *= lpg_line_value(&supers, blob, j * packed->group.k / packed->super.k);
    if (!(scale - scale == 0.0f)) {
      found->bad = 1;
    } else if (scale != 0.0f) {
      int e = lpg_exponent_of(scale);
      if (e < found->low) found->low = e;
      if (e > found->high) found->high = e;
    }
  }
}

/* Integers in the order of the magnitudes of a type's numbers: 0 for zero, and what is infinite or NaN last. */
typedef struct lpg_rank_terms {
  uint32_t mask, more; /* rank = (number & mask) + more */
  int negates;         /* I8: that of 256 - number above 127 */
  uint32_t first_bad;  /* from here on a number is not finite */
} lpg_rank_terms;

LPG_BITS_FN lpg_rank_terms lpg_rank_terms_of(lpgemm_dtype_t type) {
  lpg_rank_terms terms;
  const int has_sign = lpg_kind(type) != LPGEMM_KIND_UINT && type != LPGEMM_I8 && type != LPGEMM_E8M0;
  terms.mask = has_sign ? (1u << (lpg_bits(type) - 1)) - 1u : UINT32_MAX;
  terms.more = type == LPGEMM_E8M0; /* it has no zero */
  terms.negates = type == LPGEMM_I8;
  terms.first_bad = type == LPGEMM_F16    ? 0x7c00u
                    : type == LPGEMM_BF16 ? 0x7f80u
                    : type == LPGEMM_F32  ? 0x7f800000u
                    : type == LPGEMM_E4M3 ? 0x7fu
                    : type == LPGEMM_E8M0 ? 256u
                                          : UINT32_MAX;
  return terms;
}

LPG_BITS_FN uint32_t lpg_rank_of(lpg_rank_terms terms, uint32_t number) {
  if (terms.negates && number > 127) return 256 - number;
  return (number & terms.mask) + terms.more;
}

/* The magnitude back from it. */
LPG_BITS_FN float lpg_ranked_value(lpgemm_dtype_t type, uint32_t rank) {
  if (lpg_kind(type) == LPGEMM_KIND_UINT || type == LPGEMM_I8) return (float)rank;
  return lpg_number_value(type, type == LPGEMM_E8M0 ? rank - 1 : rank);
}

/* As many neighbouring groups, under one super scale, as are looked at together: exponents are in the order of
 * magnitudes, so only the smallest scale that is not 0 and the largest count. */
enum { LPG_SCAN_GROUPS = 16 };

typedef struct lpg_ranks {
  uint32_t below,
      most; /* one less than the least of those that are finite and not 0, and the largest; 0: there are none */
  int bad;  /* 1: one is not finite */
} lpg_ranks;

LPG_BITS_FN lpg_ranks lpg_no_ranks(void) {
  lpg_ranks ranks;
  ranks.below = UINT32_MAX;
  ranks.most = 0;
  ranks.bad = 0;
  return ranks;
}

LPG_BITS_FN void lpg_add_rank(lpg_rank_terms terms, uint32_t number, lpg_ranks *ranks) {
  uint32_t rank = lpg_rank_of(terms, number);
  if (rank >= terms.first_bad) ranks->bad = 1, rank = 0;
  if (rank > ranks->most) ranks->most = rank;
  if (rank - 1 < ranks->below) ranks->below = rank - 1; /* 0 becomes the largest number */
}

/* Of groups whose products with the super scale are in the order of the scales; 0: one of the two that count overflows
 * or became 0, so each group must be looked at. */
LPG_BITS_FN int lpg_add_extremes(lpgemm_dtype_t type, lpg_ranks ranks, float super, lpg_exponents *found) {
  const int is_bad = !(super - super == 0.0f); /* as is what it multiplies */
  found->bad |= ranks.bad | is_bad;
  if (is_bad || ranks.most == 0 || super == 0.0f) return 1;
  const float low = super * lpg_ranked_value(type, ranks.below + 1), high = super * lpg_ranked_value(type, ranks.most);
  if (!(high - high == 0.0f) || low == 0.0f) return 0;
  const int from = lpg_exponent_of(low), to = lpg_exponent_of(high);
  if (from < found->low) found->low = from;
  if (to > found->high) found->high = to;
  return 1;
}

/* Of row `row` < n. */
LPG_BITS_FN lpg_exponents lpg_scan_exponents(const lpg_packed *packed, const uint8_t *blob, int64_t row) {
  const int two_levels = packed->desc.super_scale_type != 0;
  const int64_t count = packed->group.count, under_one = two_levels ? packed->super.k / packed->group.k : count;
  const int64_t part = under_one < 1 ? 1 : under_one < LPG_SCAN_GROUPS ? under_one : LPG_SCAN_GROUPS;
  lpg_line scales = lpg_line_of(packed, LPG_SECTION_SCALES, row);
  lpg_line supers = lpg_line_of(packed, LPG_SECTION_SUPER_SCALES, row);
  const lpg_rank_terms terms = lpg_rank_terms_of(scales.type);
  lpg_exponents found = lpg_no_exponents();
  for (int64_t j = 0; j < count; j += part) {
    const int64_t end = j + part < count ? j + part : count;
    float super = 1.0f;
    int done = 1;
    if (two_levels) {
      const int64_t s = j * packed->group.k / packed->super.k;
      done = (end - 1) * packed->group.k < (s + 1) * packed->super.k;
      super = lpg_line_value(&supers, blob, s);
    }
    lpg_ranks ranks = lpg_no_ranks();
    for (int64_t i = j; i < end; i++) lpg_add_rank(terms, lpg_get_number(&scales, blob, i), &ranks);
    if (!done || !lpg_add_extremes(scales.type, ranks, super, &found)) {
      lpg_add_exponents(packed, blob, row, j, end, &found);
    }
  }
  return found;
}

/* The row exponent, and the row's part of scale_span. */
LPG_BITS_FN int8_t lpg_row_exponent_of(lpg_exponents e) {
  if (e.high < e.low) return 0;
  return (int8_t)(e.high < INT8_MIN ? INT8_MIN : e.high);
}

LPG_BITS_FN uint32_t lpg_span_of(lpg_exponents e) {
  if (e.bad) return LPG_MAX_SPAN;
  if (e.high < e.low) return 0;
  return e.high < INT8_MIN || e.high - e.low > LPG_MAX_SPAN ? LPG_MAX_SPAN : (uint32_t)(e.high - e.low);
}

#endif
