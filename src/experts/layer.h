/* A layer of experts in the making: checked arguments, both products, and where things lie in the workspace. */
#ifndef LPG_EXPERTS_LAYER_H
#define LPG_EXPERTS_LAYER_H

#include "experts.h"

enum { LPG_LAYER_CHUNK = 256 }; /* tokens: where not all fit into the workspace, a multiple of these is taken at once */

typedef struct lpg_layer {
  lpgemm_experts_args_t args; /* defaults resolved */
  lpgemm_route_args_t route;  /* of all tokens */
  lpg_routing routing;
  lpgemm_dtype_t h_type;
  int64_t m, slots;     /* of the chunk that the products are for */
  lpg_grouped up, down; /* of m tokens */
  int is_fan;           /* 1: both are of the token form (kernels/plan/fan.h), which takes no routing */
  const void *c;        /* NULL: no beta */
  float beta;
  const float *device_beta;
} lpg_layer;

/* Offsets in the workspace; bytes is what stands in front of the kernels' part. Rows of _ld numbers. */
typedef struct lpg_layer_memory {
  size_t routing;
  size_t codes, code_scales; /* X quantised, a row a token */
  size_t row_scales;         /* of gathered rows */
  size_t h, rows;            /* rows: X by slot, then what down makes of it */
  size_t h_codes, h_scales, h_ordered;
  int64_t h_ld, rows_ld, partial_ld, h_codes_ld, h_ordered_ld;
  size_t bytes;
} lpg_layer_memory;

/* Copies the arguments, resolves defaults, checks all but pointers, and opens the products of all tokens. m_max: in
 * place of route.m; NULL: that. */
lpgemm_status_t lpgemm_i_open_layer(lpgemm_handle_t handle, const lpgemm_experts_args_t *args, const int64_t *m_max,
                                    lpg_layer *l);

/* What the fastest form takes of the workspace; how many tokens at once fit into the handle's (l->m, with the memory
 * for them); and both products for so many, with their kernels. */
lpgemm_status_t lpgemm_i_layer_workspace(lpgemm_handle_t handle, lpg_layer *l, size_t *bytes);
lpgemm_status_t lpgemm_i_fit_layer(lpgemm_handle_t handle, lpg_layer *l, lpg_layer_memory *m);
lpgemm_status_t lpgemm_i_set_chunk(lpgemm_handle_t handle, lpg_layer *l, int64_t m, lpg_layer_memory *memory);

/* Chooses both products: by kernels of the token form where those are forced by name or take less time. And runs that
 * form. */
lpgemm_status_t lpgemm_i_choose_form(lpgemm_handle_t handle, lpg_layer *l, size_t workspace_bytes);
lpgemm_status_t lpgemm_i_run_fan(lpgemm_handle_t handle, lpg_layer *l, const lpg_layer_memory *m);

/* Tokens first .. first + l->m - 1, on the handle's device. */
lpgemm_status_t lpgemm_i_run_chunk(lpgemm_handle_t handle, lpg_layer *l, const lpg_layer_memory *m, int64_t first);

#endif
