/* What gemv with stacks of experts refuses, and how a plan of it is launched, in the token form and in the segment
 * form. */
#include "gemv_stack_plan.h"

#include "../operand/limits.h"

/* A lane copies at most 16 bytes of a chunk's scales: copy_one(). */
static int scales_are_one_copy(const lpg_packed *w) {
  const lpgemm_weight_desc_t *d = &w->desc;
  if (!d->scale_type) return 1;
  const lpg_gemv_kind kind = lpg_gemv_kind_of(w, LPG_STACK_COLUMNS, 0, 0);
  const int chunk = lpg_gemv_chunk(kind.row_tiles, lpg_gemv_scale_steps(w)), slot = lpg_slot_bytes(d->scale_type);
  const int shared = w->group.count > 1 && w->group.k > LPG_BLOCK_K;
  return !shared && slot >= 16 && kind.row_tiles * chunk * lpg_block_groups(&w->group) * slot <= 512;
}

const char *lpgemm_i_gemv_stack_refuses(const lpg_problem *problem) {
  const lpg_packed *w = problem->weights;
  const lpgemm_weight_desc_t *d = &w->desc;
  const lpg_center center = lpg_center_of(d);
  const char *reason = lpgemm_i_dequantisers_refuse(problem);
  if (reason) return reason;
  if (d->k == 0 || d->n == 0 || problem->m == 0) return "there is nothing to multiply";
  if (lpg_bytes(problem->x_type) != 2) return "it does not take activations of this type";
  if (lpg_has_shift(&center)) return "it does not take zeros that are no code";
  if (!lpg_stack_has_steps(w->bits, lpg_gemv_scale_steps(w)) || !scales_are_one_copy(w)) {
    return "it does not take scales of this type in groups of this size";
  }
  return NULL;
}

/* ---- the time of a call: layers of 1 to 128 tokens, H200, 2026-11-26 and 28 ---- */

static const double START = 5.5; /* microseconds of a launch: until it is known who is named, and weights come */

/* How many times as long weights take as they take to be read: groups of fewer than 128 columns more, since a warp
 * scales their products more often. */
static double slower(const lpg_packed *weights) {
  if (lpg_gemv_scale_steps(weights) == 8) return 1.1;
  return weights->desc.type == LPGEMM_FLOAT(2, 1) ? 1.37 : 1.5;
}

void lpgemm_i_gemv_stack_finish(const lpg_packed *weights, int32_t split_k, int32_t clusters, int32_t shared_bytes,
                                double ns, lpg_launch *launch) {
  const lpg_gemv_kind kind = lpg_gemv_kind_of(weights, LPG_STACK_COLUMNS, 0, 0);
  launch->tile_n = kind.row_tiles * LPG_TILE_ROWS;
  launch->tile_m = LPG_STACK_COLUMNS;
  launch->split_k = split_k;
  launch->clusters = clusters;
  launch->threads = 32 * kind.warps;
  launch->shared_bytes = shared_bytes;
  launch->us = START + slower(weights) * ns / 1000.0;
}
