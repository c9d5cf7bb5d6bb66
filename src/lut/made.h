/* What a call makes of X: tables, and what is beside them. Part of lookup.c. */
#ifndef LPG_LUT_MADE_H
#define LPG_LUT_MADE_H

#include "../cpu/cpu.h"
#include "bytes.h"

#if defined(LPG_LUT_PRODUCTS)
/* Whether weights are multiplied: segments must be whole tiles. */
static int may_multiply(const lpg_packed *packed) {
  const lpg_axis *group = &packed->group;
  const int bits = packed->bits;
  return bits >= 2 && (group->count == 1 || group->k % product_columns(fields_of(bits)) == 0);
}
#endif

/* What is made of X beside the tables: digits to multiply by, which take their place, or tables of bytes. Only where
 * the handle's memory holds them for a row. */
typedef enum others { NOTHING, PRODUCTS, BYTES } others;

static others others_of(const lpg_problem *problem, int64_t *bytes) {
  others kind = NOTHING;
  *bytes = 0;
#if defined(LPG_LUT_PRODUCTS)
  if (may_multiply(problem->weights)) {
    kind = PRODUCTS;
    *bytes = sizeof(lut_products);
  } else if (problem->level == LPGEMM_LEVEL_FAST) {
    kind = BYTES;
    *bytes = sizeof(lut_bytes);
  }
  if (lpg_lut_blocks(problem->weights->desc.k) * ((int64_t)sizeof(lpg_lut_block) + *bytes) > LPG_SHARED_BYTES) {
    kind = NOTHING;
    *bytes = 0;
  }
#else
  (void)problem;
#endif
  return kind;
}

static int digits_at(lpgemm_level_t level) { return level == LPGEMM_LEVEL_FAST ? 2 : LPG_LUT_DIGITS; }

/* ---- as a form of X ---- */

static int32_t variant(const lpg_problem *problem) {
  int64_t bytes;
  switch (others_of(problem, &bytes)) {
    case NOTHING: return 0; /* tables have all digits, at both levels */
    case BYTES: return problem->weights->bits;
#if defined(LPG_LUT_PRODUCTS)
    case PRODUCTS: return 16 * fields_of(problem->weights->bits) + digits_at(problem->level);
#endif
    default: return -1;
  }
}

static size_t made_bytes(const lpg_problem *problem) {
  int64_t bytes;
  (void)others_of(problem, &bytes);
  return (size_t)(problem->m * lpg_lut_blocks(problem->weights->desc.k)) * (sizeof(lpg_lut_block) + (size_t)bytes);
}

#endif
