/* A run's arguments, checked, and what follows from them: what lpgemm_run() and the products with stacks share. */
#ifndef LPG_REQUEST_H
#define LPG_REQUEST_H

#include "internal.h"

/* Arguments as they came in, checked and with defaults resolved, and what they need of the workspace in front of the
 * kernel's own part.
 *
 * Weights with an order of columns multiply a copy of X in that order: one step in front of any kernel, so that no
 * kernel knows of it, and X is read in disorder once and not once for every tile of W. The copy lies in the workspace.
 * Where that has no room for it, the CPU backend, which often gets no workspace at all, multiplies some rows after the
 * others, with their copy in memory that the handle has had from the start.
 *
 * Rows of X that do not begin at multiples of 16 bytes, which kernels for many rows read several times as slowly, are
 * copied so that they do, if the workspace has room for that. */
typedef struct lpg_request {
  lpgemm_run_args_t args;
  lpg_call call;
  const char *forced;
  int64_t x_rows;                      /* of X, where that is not m; else 0 */
  size_t quantized_bytes, scale_bytes; /* of X quantised inside */
  size_t ordered_bytes;                /* of X in the order of columns; 0: it stays where it is */
  int64_t ordered_ld;                  /* whole vectors of 16 bytes */
  int in_handle;                       /* 1: that is memory of the handle */
  size_t aligned_bytes;                /* of X with rows at multiples of 16 bytes; 0: it stays where it is */
  int64_t rows_at_once;                /* of X; 0: there is no room for the copy of one */
  /* In args.prepared_x; NULL: not there, or not for this call. */
  const void *prepared_codes, *prepared_order; /* X quantised; X in the order of columns */
  const float *prepared_scale;
} lpg_request;

static inline size_t lpg_align256(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* Copies the arguments; of the pointers in them only weights need be real. */
lpgemm_status_t lpgemm_i_read_args(lpgemm_handle_t handle, const lpgemm_run_args_t *args, lpg_request *r);

/* Resolves defaults, checks everything but pointers and scalars, and fills the problem. */
lpgemm_status_t lpgemm_i_make_problem(lpgemm_handle_t handle, lpg_request *r, const lpg_packed *packed,
                                      uint32_t scale_span);

/* alpha, beta and C as the call brings them. */
lpgemm_status_t lpgemm_i_read_scalars(lpg_request *r, lpgemm_handle_t handle, const lpg_scalars *scalars);

/* The pointers, and what `gate` points to: what becomes of pairs. */
lpgemm_status_t lpgemm_i_read_gate(lpg_request *r);
lpgemm_status_t lpgemm_i_check_pointers(lpg_request *r, const lpg_packed *packed);
lpgemm_status_t lpgemm_i_check_pointer(const char *name, const void *pointer, lpgemm_dtype_t type);

/* Bytes of a copy of X whose rows begin at multiples of 16 bytes; 0: none would help. */
size_t lpgemm_i_aligned_bytes(lpgemm_handle_t handle, const lpg_request *r);

/* Where X in the order of columns or aligned goes, and what the handle's workspace leaves for a kernel. */
void lpgemm_i_set_workspace(lpgemm_handle_t handle, lpg_request *r);

/* What of args.prepared_x the call by this kernel may take (src/prepare_x.c). After lpgemm_i_fill_call(). */
lpgemm_status_t lpgemm_i_read_prepared(lpg_request *r, const struct lpg_kernel *kernel);

/* The rest of the call, for a checked request. */
void lpgemm_i_fill_call(lpgemm_handle_t handle, lpg_request *r);

/* lpgemm_workspace_size() for a stack (src/experts/grouped.c). */
lpgemm_status_t lpgemm_i_grouped_workspace(lpgemm_handle_t handle, const lpg_request *request, size_t *bytes);

/* Refuses a stack, in a sentence about the function `name`. */
lpgemm_status_t lpgemm_i_refuse_stack(const lpg_packed *packed, const char *name);

#endif
