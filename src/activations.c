/* Activations: quantising them, and integer quantisation read as bipolar. */
#include <math.h>

#include "internal.h"

static lpgemm_status_t check_size(const char *name, int64_t size) {
  LPG_CHECK(size >= 0, LPGEMM_INVALID_SIZE, "%s is %lld; it must be 0 or more", name, (long long)size);
  LPG_CHECK(size <= INT32_MAX, LPGEMM_SIZE_OVERFLOW, "%s is %lld; at most %d fits", name, (long long)size, INT32_MAX);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_x(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type, int64_t *ldx) {
  LPG_TRY(check_size("m", m));
  LPG_TRY(check_size("k", k));
  if (*ldx == 0) *ldx = k;
  LPG_TRY(lpgemm_i_check_ld("ldx", *ldx, "k", k, m));
  LPG_CHECK(x || m == 0 || k == 0, LPGEMM_NULL_POINTER, "x is NULL");
  LPG_CHECK((uintptr_t)x % (uintptr_t)lpg_bytes(x_type) == 0, LPGEMM_MISALIGNED,
            "x is %p; it must be aligned to its element type %s", x, lpgemm_dtype_name(x_type));
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_quantize_activations(lpgemm_handle_t handle, int64_t m, int64_t k, const void *x,
                                            lpgemm_dtype_t x_type, int64_t ldx, lpgemm_dtype_t out_type, void *out,
                                            int64_t ldo, float *scale, lpgemm_x_scale_t mode) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(lpg_is_real(x_type), LPGEMM_INVALID_TYPE, "x_type is %s; it must be f16, bf16 or f32",
            lpgemm_dtype_name(x_type));
  LPG_CHECK(lpg_is_quantized_x(out_type), LPGEMM_INVALID_TYPE,
            "out_type is %s; it must be an integer of 1 to 8 bits or e4m3", lpgemm_dtype_name(out_type));
  LPG_CHECK(mode == LPGEMM_X_SCALE_TENSOR || mode == LPGEMM_X_SCALE_ROW, LPGEMM_INVALID_ARGUMENT,
            "mode is %d; it must be LPGEMM_X_SCALE_TENSOR or LPGEMM_X_SCALE_ROW", (int)mode);
  LPG_TRY(check_x(m, k, x, x_type, &ldx));
  if (ldo == 0) ldo = k;
  LPG_TRY(lpgemm_i_check_ld("ldo", ldo, "k", k, m));
  if (m == 0) return LPGEMM_SUCCESS;
  LPG_CHECK(out || k == 0, LPGEMM_NULL_POINTER, "out is NULL");
  LPG_CHECK(scale, LPGEMM_NULL_POINTER, "scale is NULL");
  LPG_CHECK((uintptr_t)scale % sizeof(float) == 0, LPGEMM_MISALIGNED, "scale is %p; it must be 4-byte aligned",
            (void *)scale);
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status =
      handle->backend->quantize_activations(handle, m, k, x, x_type, ldx, out_type, out, ldo, scale, mode);
  lpgemm_i_leave(handle, before);
  return status;
}

/* With n bits, u the unsigned code and v = 2u - (2^n - 1) the bipolar number of the same bits:
 *   (u - z) s = ((v + 2^n - 1) / 2 - z) s = (v - (2z - (2^n - 1))) (s / 2).
 * Two's complement q is u - 2^(n-1) with u = code ^ 2^(n-1), so its zero grows by 2^(n-1) first. */
lpgemm_status_t lpgemm_int_to_bipolar(lpgemm_dtype_t type, float scale, float zero, lpgemm_dtype_t *bipolar_type,
                                      float *bipolar_scale, float *bipolar_zero, uint8_t *code_xor) {
  int bits = lpg_bits(type);
  LPG_CHECK((lpg_kind(type) == LPGEMM_KIND_UINT || lpg_kind(type) == LPGEMM_KIND_INT) && bits >= 1 && bits <= 8,
            LPGEMM_INVALID_TYPE, "type is %s; it must be u1..u8 or i2..i8", lpgemm_dtype_name(type));
  LPG_CHECK(bipolar_type && bipolar_scale && bipolar_zero && code_xor, LPGEMM_NULL_POINTER, "%s is NULL",
            !bipolar_type    ? "bipolar_type"
            : !bipolar_scale ? "bipolar_scale"
            : !bipolar_zero  ? "bipolar_zero"
                             : "code_xor");
  LPG_CHECK(isfinite(scale) && isfinite(zero), LPGEMM_INVALID_ARGUMENT, "scale is %g and zero %g; both must be finite",
            (double)scale, (double)zero);
  float new_zero = (float)(2.0 * (double)zero + 2 * (double)lpg_stored_flip(type) - ((1 << bits) - 1));
  LPG_CHECK(isfinite(new_zero) && (scale == 0.0f || scale / 2.0f != 0.0f), LPGEMM_INVALID_ARGUMENT,
            "scale is %g and zero %g; scale / 2 or 2 * zero is beyond fp32", (double)scale, (double)zero);
  *bipolar_type = LPGEMM_BIPOLAR((lpgemm_dtype_t)bits);
  *code_xor = (uint8_t)lpg_stored_flip(type);
  *bipolar_zero = new_zero;
  *bipolar_scale = scale / 2.0f;
  return LPGEMM_SUCCESS;
}
