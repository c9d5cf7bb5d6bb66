/* A copy of X for kernels that multiply 16-bit numbers and read X by 16 bytes: in fp16 where X has 8 bits, and with
 * rows that begin at multiples of 16 bytes where X's do not. To copy numbers one by one while they are multiplied takes
 * several times as long as the product. */
#ifndef LPG_KERNELS_X_COPY_H
#define LPG_KERNELS_X_COPY_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 1 if every byte of X is the int8 number that it stands for: int8, and codes that are int8 as they lie. */
static inline int lpg_x_is_int8(lpgemm_dtype_t x_type) {
  return lpg_kind(x_type) == LPGEMM_KIND_INT || (lpg_kind(x_type) == LPGEMM_KIND_UINT && lpg_bits(x_type) < 8);
}

/* `bytes`: of a number of the copy, 1 or 2. */

/* Scales between the rows of the copy: whole pieces of 16 bytes. */
static inline int64_t lpg_x_copy_pitch(const lpg_problem *problem, int bytes) {
  const int64_t each = 16 / bytes;
  return (problem->weights->desc.k + each - 1) / each * each;
}

/* Bytes of the copy; 0 where X needs none. Rows that are whole pieces may lie apart as they like: if not by pieces,
 * kernels read them slowly, since nobody has reserved a copy for them. */
static inline size_t lpg_x_copy_bytes(const lpg_problem *problem, int bytes) {
  const int64_t pitch = lpg_x_copy_pitch(problem, bytes);
  if (lpg_bytes(problem->x_type) == bytes && pitch == problem->weights->desc.k) return 0;
  return (size_t)(problem->m * pitch * bytes);
}

/* Microseconds that making it takes (H200, 2026-11-22). */
static inline double lpg_x_copy_us(const lpg_problem *problem, int bytes) {
  const double copy = (double)lpg_x_copy_bytes(problem, bytes);
  return copy > 0.0 ? 2.0 + copy / 1.7e6 : 0.0;
}

/* If X needs it: makes the copy, and lets the call have it as its X. */
lpgemm_status_t lpgemm_i_cuda_copy_x(lpg_call *call, int bytes, void *copy);
lpgemm_status_t lpgemm_i_cuda_prepare_copy_x(void);

#ifdef __cplusplus
}
#endif

#endif
