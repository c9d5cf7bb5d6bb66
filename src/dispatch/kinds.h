/* A problem's types as members of the registry's sets. */
#ifndef LPG_DISPATCH_KINDS_H
#define LPG_DISPATCH_KINDS_H

#include "dispatch.h"

/* ---- kinds of scales and zeros: one line each, in the order of the members; what follows is checked by the compiler
 * ---- */

/* Scales: the word in tuning files, and the type of the scales. */
#define LPG_TWO_LEVELS 0xffffffffu /* in place of a type: no type has this number */
#define LPG_SCALE_KINDS(KIND)     \
  KIND(NONE, "none", 0)           \
  KIND(F16, "f16", LPGEMM_F16)    \
  KIND(BF16, "bf16", LPGEMM_BF16) \
  KIND(F32, "f32", LPGEMM_F32)    \
  KIND(E8M0, "e8m0", LPGEMM_E8M0) \
  KIND(E4M3, "e4m3", LPGEMM_E4M3) \
  KIND(TWO_LEVEL, "two-level", LPG_TWO_LEVELS)

/* Zeros: the word in tuning files. */
#define LPG_ZERO_KINDS(KIND) \
  KIND(NONE, "none")         \
  KIND(CONSTANT, "constant") \
  KIND(INTEGER, "integer")   \
  KIND(REAL, "real")         \
  KIND(MINIMUM, "minimum")

/* Line i of a list is the member 1 << i, and the lines are all members. */
#define LPG_SCALE_LINE_(name, word, type) LPG_SCALE_LINE_##name,
#define LPG_SCALE_CHECK_(name, word, type) _Static_assert(LPG_S_##name == 1 << LPG_SCALE_LINE_##name, "order: " word);
enum { LPG_SCALE_KINDS(LPG_SCALE_LINE_) LPG_SCALE_LINES };
LPG_SCALE_KINDS(LPG_SCALE_CHECK_)
_Static_assert(LPG_S_ANY == (1 << LPG_SCALE_LINES) - 1, "every LPG_S_ member needs a line in LPG_SCALE_KINDS");

#define LPG_ZERO_LINE_(name, word) LPG_ZERO_LINE_##name,
#define LPG_ZERO_CHECK_(name, word) _Static_assert(LPG_Z_##name == 1 << LPG_ZERO_LINE_##name, "order: " word);
enum { LPG_ZERO_KINDS(LPG_ZERO_LINE_) LPG_ZERO_LINES };
LPG_ZERO_KINDS(LPG_ZERO_CHECK_)
_Static_assert(LPG_Z_ANY == (1 << LPG_ZERO_LINES) - 1, "every LPG_Z_ member needs a line in LPG_ZERO_KINDS");

/* ---- the member of a type; 0, which no kernel takes, if it has none ---- */

#define LPG_WEIGHT_CASE_(name, least, most) \
  case LPGEMM_KIND_##name: return LPG_W_##name;
static inline uint32_t lpg_weight_member(lpgemm_dtype_t type) {
  switch (lpg_kind(type)) {
    LPG_WEIGHT_KINDS(LPG_WEIGHT_CASE_)
    default: return 0;
  }
}

static inline uint32_t lpg_x_member(lpgemm_dtype_t type) {
  switch (type) {
    case LPGEMM_F16: return LPG_X_F16;
    case LPGEMM_BF16: return LPG_X_BF16;
    case LPGEMM_F32: return LPG_X_F32;
    case LPGEMM_I8: return LPG_X_I8;
    case LPGEMM_E4M3: return LPG_X_E4M3;
    case LPGEMM_E5M2: return LPG_X_E5M2;
    default: return lpg_is_integer_kind(type) ? LPG_X_CODES : 0;
  }
}

static inline uint32_t lpg_y_member(lpgemm_dtype_t type) {
  switch (type) {
    case LPGEMM_F16: return LPG_Y_F16;
    case LPGEMM_BF16: return LPG_Y_BF16;
    case LPGEMM_F32: return LPG_Y_F32;
    case LPGEMM_I32: return LPG_Y_I32;
    default: return 0;
  }
}

#define LPG_SCALE_CASE_(name, word, type) \
  case type: return LPG_S_##name;
static inline uint32_t lpg_scale_member(const lpgemm_weight_desc_t *desc) {
  switch (desc->super_scale_type ? LPG_TWO_LEVELS : desc->scale_type) {
    LPG_SCALE_KINDS(LPG_SCALE_CASE_)
    default: return 0;
  }
}

static inline uint32_t lpg_zero_member(const lpgemm_weight_desc_t *desc) {
  switch (desc->zero) {
    case LPGEMM_ZERO_NONE: return LPG_Z_NONE;
    case LPGEMM_ZERO_CONSTANT: return LPG_Z_CONSTANT;
    case LPGEMM_ZERO_PER_GROUP: return lpg_is_real(desc->zero_type) ? LPG_Z_REAL : LPG_Z_INTEGER;
    case LPGEMM_ZERO_MINIMUM: return LPG_Z_MINIMUM;
    default: return 0;
  }
}

/* Columns that share a scale; 0 when one group covers the row. */
static inline int64_t lpg_group_columns(const lpg_packed *packed) {
  return packed->group.count <= 1 ? 0 : packed->desc.group_k;
}

static inline uint32_t lpg_group_member(const lpg_packed *packed) {
  switch (lpg_group_columns(packed)) {
    case 0: return LPG_G_ROW;
    case 16: return LPG_G_16;
    case 32: return LPG_G_32;
    case 64: return LPG_G_64;
    case 128: return LPG_G_128;
    default: return LPG_G_OTHER;
  }
}

#endif
