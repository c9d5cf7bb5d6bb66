/* Products with stacks of experts, and what the layer is made of. */
#ifndef LPG_EXPERTS_H
#define LPG_EXPERTS_H

#include "../dispatch/dispatch.h"
#include "../request.h"
#include "routing.h"

/* A product whose rows of X are dealt out to the experts of a stack. X, Y and the offsets are set by who runs it; X is
 * as the kernel reads it: by number of row, in the order of columns, quantised. */
typedef struct lpg_grouped {
  lpg_request r;
  const lpg_kernel *kernel; /* NULL: each expert's rows have their own */
  size_t needed;            /* bytes of workspace that it needs */
  lpg_planned own;          /* the plan */
} lpg_grouped;

/* From a request that was read: checks types and sizes of a product of args.m rows. is_gathered: its rows of X begin
 * where kernels like it. */
lpgemm_status_t lpgemm_i_open_product(lpgemm_handle_t handle, lpg_grouped *p, int is_gathered, int32_t top_k);

/* X of the call, to be brought into the order of each expert's columns. Who calls says which rows, and where they go.
 */
static inline lpg_gather lpg_gather_of(const lpg_call *call) {
  const lpg_gather g = {.experts = call->problem.experts,
                        .offsets = call->offsets,
                        .order = call->section[LPG_SECTION_COLUMN_ORDER],
                        .order_stride = call->stride,
                        .k = call->problem.weights->desc.k,
                        .bytes = lpg_bytes(call->problem.x_type),
                        .x = call->x,
                        .ldx = call->ldx};
  return g;
}

/* Chooses for that many bytes of workspace. by_expert: only sees that there is a kernel, for as many rows as an expert
 * has on the average. */
lpgemm_status_t lpgemm_i_choose_product(lpgemm_handle_t handle, lpg_grouped *p, size_t workspace_bytes);

/* The most workspace that a kernel for it may ask for; a forced one that is not there is refused. */
lpgemm_status_t lpgemm_i_product_workspace(lpgemm_handle_t handle, const lpg_grouped *p, size_t *bytes);

/* Has the kernel that was chosen take row row[i] of x as row i, if it can: then the call says so, nothing needs to
 * gather them, and 1 is returned. Rows must be aligned, and X as it is, in order and without scales of rows. */
int lpgemm_i_try_by_row(lpg_grouped *p, const void *x, int64_t ldx, const int32_t *row, int64_t x_rows);

/* Multiplies: r.call is filled, r.args.m rows. */
lpgemm_status_t lpgemm_i_run_product(lpgemm_handle_t handle, lpg_grouped *p, void *workspace);

/* The same where the host reads the offsets: each expert with rows is a run of its own. */
lpgemm_status_t lpgemm_i_run_by_expert(lpgemm_handle_t handle, const lpg_grouped *p, void *workspace);

/* Refuses a kernel that needs more workspace than is left for it. */
lpgemm_status_t lpgemm_i_check_left(const lpg_kernel *kernel, size_t needed, size_t left);

/* Checks arguments of a routing of at most that many tokens, and gives its layout. */
lpgemm_status_t lpgemm_i_read_route(const lpgemm_route_args_t *from, lpgemm_route_args_t *args);
lpgemm_status_t lpgemm_i_check_route(int64_t m, int32_t top_k, int32_t experts, lpg_routing *routing);

/* Tokens first .. first + m - 1 of the arguments, into memory with that layout. */
lpgemm_status_t lpgemm_i_route(lpgemm_handle_t handle, const lpgemm_route_args_t *args, int64_t first, int64_t m,
                               void *memory);

#endif
