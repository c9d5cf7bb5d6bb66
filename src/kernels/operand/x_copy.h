/* A copy of X for kernels that read X in pieces of 16 bytes: its rows begin at multiples of 16 bytes, and 8-bit X is
 * fp16 in it where the kernel multiplies 16 bits, and X but bf16 fp32 where it multiplies TF32. Reading X value by
 * value during the product would take several times as long as the product. */
#ifndef LPG_KERNELS_X_COPY_H
#define LPG_KERNELS_X_COPY_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 1 if every byte of X, as it lies, is the int8 value that it stands for. */
static inline int lpg_x_is_int8(lpgemm_dtype_t x_type) {
  return lpg_kind(x_type) == LPGEMM_KIND_INT || (lpg_kind(x_type) == LPGEMM_KIND_UINT && lpg_bits(x_type) < 8);
}

/* In what follows `bytes` is the size of an element of the copy, 1, 2 or 4. */

/* Row pitch of the copy, in elements: whole pieces of 16 bytes. */
static inline int64_t lpg_x_copy_pitch(const lpg_problem *problem, int bytes) {
  const int64_t each = 16 / bytes;
  return (problem->weights->desc.k + each - 1) / each * each;
}

/* Bytes of the copy; 0 where X needs none. Rows of whole pieces need no copy here: where ldx is no multiple of a
 * piece, one was made in front of the kernel if the workspace had room (request.h); else kernels read X slowly. */
static inline size_t lpg_x_copy_bytes(const lpg_problem *problem, int bytes) {
  const int64_t pitch = lpg_x_copy_pitch(problem, bytes);
  if (lpg_bytes(problem->x_type) == bytes && pitch == problem->weights->desc.k) return 0;
  return (size_t)(problem->m * pitch * bytes);
}

/* Microseconds that the copy takes (H200, 2026-11-22; as a kernel ahead of gemm, 18 calls, 2026-11-29:
 * bench/results/h200-gemm-warps.txt). */
static inline double lpg_x_copy_us(const lpg_problem *problem, int bytes) {
  const double copy = (double)lpg_x_copy_bytes(problem, bytes);
  return copy > 0.0 ? 3.2 + copy / 1.7e6 : 0.0;
}

/* Makes the copy if X needs it, and points the call's X at it. */
lpgemm_status_t lpgemm_i_cuda_copy_x(lpg_call *call, int bytes, void *copy);

/* Makes a copy of X as it is, row after row of the k columns, which are whole pieces of 16 bytes. */
lpgemm_status_t lpgemm_i_cuda_align_x(const lpg_call *call, void *copy);

lpgemm_status_t lpgemm_i_cuda_prepare_copy_x(void);

#ifdef __cplusplus
}
#endif

#endif
