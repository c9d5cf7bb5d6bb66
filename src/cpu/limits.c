/* What the kernels tiles and dot do not take, beyond the sets of its record. */
#include "cpu.h"
#include "dot_bytes.h"

/* bf16 holds all entries, and none so small that products with fp16 would be subnormal: those count as 0. */
static int fits_bf16(const lpgemm_weight_desc_t *d) {
  for (int i = 0; i < 1 << lpg_bits(d->type); i++) {
    const uint32_t bits = lpg_f32_bits(d->codebook[i]), magnitude = bits & 0x7fffffffu;
    if ((bits & 0xffffu) != 0 || (magnitude != 0 && magnitude < lpg_f32_bits(0x1p-64f))) return 0;
  }
  return 1;
}

/* Scales and zeros that fp32 holds only together with the global scale or those of rows. */
static int may_need_global(const lpgemm_weight_desc_t *d) {
  const int has_factor = d->global_scale != 1.0f || d->row_scales;
  for (int i = 0; i < LPG_SECTIONS && has_factor; i++) {
    const lpgemm_dtype_t type = lpg_section_type(d, (lpg_section_id)i);
    if (type == LPGEMM_F32 || type == LPGEMM_BF16 || type == LPGEMM_E8M0) return 1;
  }
  return 0;
}

const char *lpgemm_i_cpu_tiles_refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpgemm_weight_desc_t *d = &problem->weights->desc;
  const int is_integer = lpg_is_integer_kind(d->type);
  (void)self, (void)device;
  if (problem->weights->group.count > 1 && problem->weights->group.k % 32 != 0)
    return "it takes groups of 32, 64, 96 ... columns and whole rows only";
  if (is_integer && lpg_is_integer_kind(problem->x_type) && !d->scale_type) {
    return "it does not add up integers without scales exactly";
  }
  if (lpg_kind(d->type) == LPGEMM_KIND_CODEBOOK && !fits_bf16(d)) return "bf16 does not hold the codebook";
  if ((!is_integer || lpg_kind(d->type) == LPGEMM_KIND_BIPOLAR) && d->zero != LPGEMM_ZERO_NONE &&
      !(d->zero == LPGEMM_ZERO_CONSTANT && d->zero_constant == 0.0f)) {
    return "it takes zeros of u1-u8 and i2-i8 only";
  }
  if ((d->super_scale_type && d->super_scale_type != LPGEMM_F16) ||
      (d->super_zero_type && d->super_zero_type != LPGEMM_F16)) {
    return "of two levels it takes fp16 as the upper one only";
  }
  if (may_need_global(d)) return "fp32 may hold the scales together with global or row scales only";
  return NULL;
}

const char *lpgemm_i_cpu_dot_refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpgemm_weight_desc_t *d = &problem->weights->desc;
  lpg_dot_bytes unused;
  (void)self, (void)device;
  if (lpg_is_integer_kind(d->type) && lpg_is_integer_kind(problem->x_type) && !d->scale_type) {
    return "it does not add up integers without scales exactly";
  }
  if (!lpg_find_bytes(d, problem->level == LPGEMM_LEVEL_FAST, &unused)) {
    return "it takes floats and codebooks of up to 16 values that three bytes hold only";
  }
  if ((d->super_scale_type && d->super_scale_type != LPGEMM_F16) ||
      (d->super_zero_type && d->super_zero_type != LPGEMM_F16)) {
    return "of two levels it takes fp16 as the upper one only";
  }
  if (may_need_global(d)) return "fp32 may hold the scales together with global or row scales only";
  if (d->k > LPG_DOT_MOST_K) return "it takes no more than 2^20 columns";
  if (d->k > LPG_DOT_MOST_EXACT_K && problem->level == LPGEMM_LEVEL_EXACT && !lpg_is_bytes(problem->x_type)) {
    return "it takes no more than 2^18 columns by digits of X";
  }
  return NULL;
}
