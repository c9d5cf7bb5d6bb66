/* The CPU backend: a pool of threads, the kernels, and what they share. */
#ifndef LPG_CPU_H
#define LPG_CPU_H

#include "../internal.h"

/* ---- threads: a pool belongs to one handle ---- */

/* A pool for `threads` workers (0 = one a core), each with LPG_SCRATCH_BYTES of 64-byte aligned scratch. The calling
 * thread and threads of its own, fewer if the system refuses some; or, if the caller lends its own by a function
 * (config.parallel_for), none but those. NULL if memory is short. */
enum { LPG_SCRATCH_BYTES = 1024 * 1024 };
lpg_pool *lpgemm_i_pool_create(int threads, lpgemm_parallel_for_t lent, void *lender);
/* The same for another number of threads. */
lpg_pool *lpgemm_i_pool_resized(const lpg_pool *pool, int threads);
void lpgemm_i_pool_destroy(lpg_pool *pool);
int lpgemm_i_pool_threads(const lpg_pool *pool);
/* 64-byte aligned memory for what the tasks of a call share. */
enum { LPG_SHARED_BYTES = 2 * 1024 * 1024 };
void *lpgemm_i_pool_shared(lpg_pool *pool);

/* Runs task(context, index, scratch) for index 0 .. count - 1, in any order, on all threads of the pool; returns when
 * all are done. It fails only if lent threads did not do what they must. */
typedef void lpg_task(void *context, int64_t index, void *scratch);
#if defined(__GNUC__)
__attribute__((warn_unused_result))
#endif
lpgemm_status_t
lpgemm_i_parallel(lpg_pool *pool, int64_t count, lpg_task *task, void *context);

/* The set of LPG_ISA_ that this processor runs, this build knows and LPGEMM_CPU leaves. */
lpgemm_status_t lpgemm_i_cpu_isa(int32_t *sets);
/* Fills a lpg_device for the CPU backend with `threads` threads. */
lpgemm_status_t lpgemm_i_cpu_device(int threads, lpg_device *device);

/* ---- work on the pool: packing rows, X in the order of columns (lpg_backend) ---- */

lpgemm_status_t lpgemm_i_pack_rows_parallel(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_source *source,
                                            int64_t first_row, uint8_t *blob, lpg_content *content);
lpgemm_status_t lpgemm_i_gather_host(lpgemm_handle_t handle, const lpg_packed *packed, int64_t m, const void *x,
                                     lpgemm_dtype_t x_type, int64_t ldx, const int32_t *order, void *out, int64_t ldo);

/* ---- kernels: the rows of the registry ---- */

/* Mixtures of experts (src/experts/routing.h). */
lpgemm_status_t lpgemm_i_route_host(lpgemm_handle_t handle, const lpg_route *route);
lpgemm_status_t lpgemm_i_gather_rows_host(lpgemm_handle_t handle, const lpg_gather *gather);
lpgemm_status_t lpgemm_i_combine_host(lpgemm_handle_t handle, const lpg_combine *combine);

/* The oracle: plain loops, products summed in fp64, one rounding. Any type, any shape. */
lpgemm_status_t lpgemm_i_cpu_reference(const lpg_call *call);

/* Blocked and threaded, one file compiled for three instruction sets. */
lpgemm_status_t lpgemm_i_cpu_blocked_base(const lpg_call *call);
lpgemm_status_t lpgemm_i_cpu_blocked_avx2(const lpg_call *call);
lpgemm_status_t lpgemm_i_cpu_blocked_avx512(const lpg_call *call);

/* For many rows, one file compiled for AMX, and in plain C for tests. */
lpgemm_status_t lpgemm_i_cpu_tiles_amx(const lpg_call *call);
lpgemm_status_t lpgemm_i_cpu_tiles_base(const lpg_call *call);
/* NULL, or why the problem is not for it. */
const char *lpgemm_i_cpu_tiles_refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device);

/* For X of 8 bits, its own or of the level FAST. */
lpgemm_status_t lpgemm_i_cpu_dot_vbmi(const lpg_call *call);
lpgemm_status_t lpgemm_i_cpu_dot_avxvnni(const lpg_call *call);
lpgemm_status_t lpgemm_i_cpu_dot_avx2(const lpg_call *call);
lpgemm_status_t lpgemm_i_cpu_dot_dotprod(const lpg_call *call);
lpgemm_status_t lpgemm_i_cpu_dot_base(const lpg_call *call);
extern const lpg_x_form lpgemm_i_cpu_dot_vbmi_form, lpgemm_i_cpu_dot_avxvnni_form, lpgemm_i_cpu_dot_avx2_form,
    lpgemm_i_cpu_dot_dotprod_form, lpgemm_i_cpu_dot_base_form;
const char *lpgemm_i_cpu_dot_refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device);

/* ---- activations, on host memory; arguments are checked ---- */

void lpgemm_i_quantize_activations_host(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type, int64_t ldx,
                                        lpgemm_dtype_t out_type, void *out, int64_t ldo, float *scale,
                                        lpgemm_x_scale_t mode);

#endif
