/* MUL_MAT and MUL_MAT_ID of packed weights by fp32 X, with ggml's strides: what all devices share. */
#include "module.h"

static bool has_fp32_rows(const struct ggml_tensor *t) {
  bool fits = t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float);
  for (int i = 1; i < GGML_MAX_DIMS; i++) fits = fits && t->nb[i] % sizeof(float) == 0;
  return fits && (t->ne[1] == 1 || t->nb[1] >= (size_t)t->ne[0] * sizeof(float));
}

bool lpgemm_ggml_can_multiply(const struct ggml_tensor *node) {
  const struct ggml_tensor *w = node->src[0], *x = node->src[1], *ids = node->src[2];
  if (!lpgemm_ggml_is_packed(w) || !has_fp32_rows(x) || !has_fp32_rows(node)) return false;
  return node->op == GGML_OP_MUL_MAT || (w->ne[3] == 1 && x->ne[3] == 1 && ids->type == GGML_TYPE_I32);
}

lpgemm_ggml_x lpgemm_ggml_own_x(const struct ggml_tensor *x) {
  lpgemm_ggml_x own = {.data = x->data, .type = LPGEMM_F32};
  for (int i = 0; i < GGML_MAX_DIMS; i++) own.nb[i] = x->nb[i];
  return own;
}

/* Whether all rows of dimensions 1 to 3 are one matrix. */
static bool is_one_matrix(const int64_t *ne, const size_t *nb) {
  return nb[1] >= (size_t)ne[0] * nb[0] && (ne[2] == 1 || nb[2] == nb[1] * (size_t)ne[1]) &&
         (ne[3] == 1 || nb[3] == nb[2] * (size_t)ne[2]);
}

static lpgemm_run_args_t product_of(lpgemm_level_t level, lpgemm_weights_t weights, int64_t m, const void *x,
                                    lpgemm_dtype_t x_type, int64_t ldx, void *y, int64_t ldy) {
  return (lpgemm_run_args_t){.size = sizeof(lpgemm_run_args_t),
                             .weights = weights,
                             .m = m,
                             .x = x,
                             .ldx = m > 1 ? ldx : 0,
                             .x_type = x_type,
                             .y = y,
                             .ldy = m > 1 ? ldy : 0,
                             .y_type = LPGEMM_F32,
                             .level = level};
}

lpgemm_status_t lpgemm_ggml_multiply(lpgemm_handle_t handle, lpgemm_level_t level, const lpgemm_ggml_x *x,
                                     const struct ggml_tensor *y) {
  const struct ggml_tensor *w = y->src[0];
  const int64_t *x_ne = y->src[1]->ne;
  const lpgemm_weights_t weights = lpgemm_ggml_weights(w);
  const int64_t count = w->ne[2] * w->ne[3], r2 = x_ne[2] / w->ne[2], r3 = x_ne[3] / w->ne[3];
  const int64_t ldx = (int64_t)(x->nb[1] / x->nb[0]), ldy = (int64_t)(y->nb[1] / sizeof(float));
  if (count == 1 && is_one_matrix(x_ne, x->nb) && is_one_matrix(y->ne, y->nb)) {
    const int64_t rows = x_ne[1] * x_ne[2] * x_ne[3];
    const lpgemm_run_args_t args = product_of(level, weights, rows, x->data, x->type, ldx, y->data, ldy);
    return lpgemm_run(handle, &args);
  }
  lpgemm_status_t status = LPGEMM_SUCCESS;
  for (int64_t i = 0; i < x_ne[2] * x_ne[3] && status == LPGEMM_SUCCESS; i++) {
    const size_t i2 = (size_t)(i % x_ne[2]), i3 = (size_t)(i / x_ne[2]);
    lpgemm_ggml_storage storage;
    lpgemm_weights_t matrix = weights;
    if (count > 1) {
      status = lpgemm_ggml_matrix(handle, w, (int64_t)i3 / r3 * w->ne[2] + (int64_t)i2 / r2, &storage, &matrix);
      if (status != LPGEMM_SUCCESS) return status;
    }
    const lpgemm_run_args_t args = product_of(level, matrix, x_ne[1], x->data + i2 * x->nb[2] + i3 * x->nb[3], x->type,
                                              ldx, (char *)y->data + i2 * y->nb[2] + i3 * y->nb[3], ldy);
    status = lpgemm_run(handle, &args);
    if (count > 1) lpgemm_weights_destroy(matrix);
  }
  return status;
}

lpgemm_status_t lpgemm_ggml_multiply_sorted(lpgemm_handle_t handle, lpgemm_level_t level, const void *x,
                                            lpgemm_dtype_t x_type, const int32_t *offsets, int64_t slots, float *sorted,
                                            const struct ggml_tensor *y) {
  const struct ggml_tensor *w = y->src[0];
  const lpgemm_run_args_t args =
      product_of(level, lpgemm_ggml_weights(w), slots, x, x_type, w->ne[0], sorted, w->ne[1]);
  const lpgemm_groups_t groups = {.size = sizeof groups, .offsets = offsets};
  return lpgemm_run_grouped(handle, &args, &groups);
}
