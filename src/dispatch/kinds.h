/* A problem's types as members of the registry's sets. */
#ifndef LPG_DISPATCH_KINDS_H
#define LPG_DISPATCH_KINDS_H

#include "dispatch.h"

/* LPG_W_ members stand in the order of the kinds of weight types. */
static inline uint32_t lpg_weight_member(lpgemm_dtype_t type) { return 1u << (lpg_kind(type) - LPGEMM_KIND_UINT); }

static inline uint32_t lpg_x_member(lpgemm_dtype_t type) {
  switch (type) {
    case LPGEMM_F16: return LPG_X_F16;
    case LPGEMM_BF16: return LPG_X_BF16;
    case LPGEMM_F32: return LPG_X_F32;
    case LPGEMM_I8: return LPG_X_I8;
    case LPGEMM_E4M3: return LPG_X_E4M3;
    case LPGEMM_E5M2: return LPG_X_E5M2;
    default: return LPG_X_CODES;
  }
}

static inline uint32_t lpg_y_member(lpgemm_dtype_t type) {
  switch (type) {
    case LPGEMM_F16: return LPG_Y_F16;
    case LPGEMM_BF16: return LPG_Y_BF16;
    case LPGEMM_F32: return LPG_Y_F32;
    default: return LPG_Y_I32;
  }
}

static inline uint32_t lpg_scale_member(const lpgemm_weight_desc_t *desc) {
  if (desc->super_scale_type) return LPG_S_TWO_LEVEL;
  switch (desc->scale_type) {
    case 0: return LPG_S_NONE;
    case LPGEMM_F16: return LPG_S_F16;
    case LPGEMM_BF16: return LPG_S_BF16;
    case LPGEMM_F32: return LPG_S_F32;
    case LPGEMM_E8M0: return LPG_S_E8M0;
    default: return LPG_S_E4M3;
  }
}

static inline uint32_t lpg_zero_member(const lpgemm_weight_desc_t *desc) {
  switch (desc->zero) {
    case LPGEMM_ZERO_NONE: return LPG_Z_NONE;
    case LPGEMM_ZERO_CONSTANT: return LPG_Z_CONSTANT;
    case LPGEMM_ZERO_PER_GROUP: return lpg_is_real(desc->zero_type) ? LPG_Z_REAL : LPG_Z_INTEGER;
    default: return LPG_Z_MINIMUM;
  }
}

/* Columns that share a scale; 0 when one group covers the row. */
static inline int64_t lpg_group_columns(const lpg_plan *plan) {
  return plan->group.count <= 1 ? 0 : plan->desc.group_k;
}

static inline uint32_t lpg_group_member(const lpg_plan *plan) {
  switch (lpg_group_columns(plan)) {
    case 0: return LPG_G_ROW;
    case 16: return LPG_G_16;
    case 32: return LPG_G_32;
    case 64: return LPG_G_64;
    case 128: return LPG_G_128;
    default: return LPG_G_OTHER;
  }
}

#endif
