/* From a packed matrix back to codes, values, scales and zeros. */
#include "pack.h"

/* ---- values ---- */

/* What the weights of one group share. An absent factor is 1. */
typedef struct group_terms {
  const lpgemm_weight_desc_t *desc;
  float scale, super_scale, zero, super_zero; /* zero: or the minimum */
} group_terms;

static float term(const lpg_plan *plan, const uint8_t *blob, lpg_section_id id, int64_t row, int64_t column,
                  float absent) {
  if (plan->section[id].bytes == 0) return absent;
  lpg_line line = lpgemm_i_line(plan, id, row);
  return lpgemm_i_number_value(&line, blob, column / lpg_section_axis(plan, id)->k);
}

static group_terms terms_at(const lpg_plan *plan, const uint8_t *blob, int64_t row, int64_t column) {
  group_terms g;
  g.desc = &plan->desc;
  g.scale = term(plan, blob, LPG_SECTION_SCALES, row, column, 1.0f);
  g.super_scale = term(plan, blob, LPG_SECTION_SUPER_SCALES, row, column, 1.0f);
  g.zero = term(plan, blob, LPG_SECTION_ZEROS, row, column, plan->desc.zero_constant);
  g.super_zero = term(plan, blob, LPG_SECTION_SUPER_ZEROS, row, column, 1.0f);
  return g;
}

/* The exact value of a weight, as an fp64 that rounds to the narrower formats as the exact value does. */
static double weight_value(const group_terms *g, uint32_t code) {
  double value = (double)lpg_code_value(g->desc->type, code, g->desc->codebook);
  int minimum = g->desc->zero == LPGEMM_ZERO_MINIMUM;
  lpg_wide w = lpg_wide_add(value, minimum ? 0.0 : -(double)g->zero);
  w = lpg_wide_times(w, g->scale);
  if (g->super_scale != 1.0f) w = lpg_wide_times(w, g->super_scale);
  if (minimum) w = lpg_wide_plus(w, lpg_wide_add((double)g->zero * (double)g->super_zero, 0.0));
  if (g->desc->global_scale != 1.0f) w = lpg_wide_times(w, g->desc->global_scale);
  return lpg_wide_to_odd(w);
}

/* Values of columns first .. first + count - 1 of a row, which lie in one group. A group with more columns than there
 * are codes takes them from a table. */
static void group_values(const lpg_plan *plan, const uint8_t *blob, int64_t row, int64_t first, int64_t count,
                         const uint8_t *codes, lpgemm_dtype_t out_type, void *out, int64_t at) {
  group_terms g = terms_at(plan, blob, row, first);
  double table[256];
  int in_table = count >= 1 << plan->bits;
  for (uint32_t code = 0; in_table && code < 1u << plan->bits; code++) table[code] = weight_value(&g, code);
  for (int64_t i = 0; i < count; i++) {
    lpg_store_f64(out_type, out, at + i, in_table ? table[codes[i]] : weight_value(&g, codes[i]));
  }
}

/* ---- the matrix ---- */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void lpgemm_i_unpack_host(const lpg_plan *plan, const uint8_t *blob, lpgemm_dtype_t out_type, void *out, int64_t ldo) {
  int tile_k = lpg_tile_k(plan->bits);
  uint8_t codes[LPG_LONGEST_TILE_ROW];
  for (int64_t row = 0; row < plan->desc.n; row++) {
    for (int64_t tile = 0; tile < plan->k_tiles; tile++) {
      int64_t first = tile * tile_k, end = smaller(first + tile_k, plan->desc.k);
      const uint8_t *from = blob + plan->section[LPG_SECTION_CODES].offset +
                            lpg_tile_offset(plan->bits, plan->k_tiles, row / LPG_TILE_ROWS, tile);
      lpgemm_i_get_codes(plan->desc.type, from, (int)(row % LPG_TILE_ROWS), codes);
      if (out_type == LPGEMM_U8) {
        memcpy((uint8_t *)out + row * ldo + first, codes, (size_t)(end - first));
        continue;
      }
      for (int64_t column = first, next; column < end; column = next) {
        next = smaller((column / plan->group.k + 1) * plan->group.k, end);
        group_values(plan, blob, row, column, next - column, codes + (column - first), out_type, out,
                     row * ldo + column);
      }
    }
  }
}

/* ---- scales and zeros ---- */

uint64_t lpgemm_i_part_bytes(const lpg_plan *plan, lpg_section_id id) {
  uint64_t numbers = (uint64_t)plan->desc.n * (uint64_t)lpg_section_axis(plan, id)->count;
  return numbers * (uint64_t)lpg_bytes(lpgemm_i_section_type(&plan->desc, id));
}

void lpgemm_i_unpack_part_host(const lpg_plan *plan, const uint8_t *blob, lpg_section_id id, void *out) {
  int bytes = lpg_bytes(lpgemm_i_section_type(&plan->desc, id));
  uint8_t *to = (uint8_t *)out;
  for (int64_t row = 0; row < plan->desc.n; row++) {
    lpg_line line = lpgemm_i_line(plan, id, row);
    for (int64_t j = 0; j < lpg_section_axis(plan, id)->count; j++) {
      uint32_t number = lpgemm_i_get_number(&line, blob, j);
      for (int i = 0; i < bytes; i++) *to++ = (uint8_t)(number >> 8 * i);
    }
  }
}
